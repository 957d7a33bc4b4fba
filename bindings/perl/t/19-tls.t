use strict;
use warnings;
use lib '.';
use Test::More;
use File::Temp qw(tempdir);
use IO::Select;
use IO::Socket::INET;
use HTTP::Haul;

# TLS against openssl's own server, with an authority made here.
delete @ENV{qw(http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY no_proxy SSL_CERT_FILE SSL_CERT_DIR PERL_LWP_SSL_CA_FILE
    HTTPS_CA_FILE PERL_LWP_SSL_VERIFY_HOSTNAME PERL_HTTP_TINY_SSL_INSECURE_BY_DEFAULT)};
plan skip_all => 'openssl is not installed' if system('openssl version >/dev/null 2>&1') != 0;

my $dir = tempdir(CLEANUP => 1);
my $run = sub { system("cd '$dir' && openssl $_[0] >/dev/null 2>&1") == 0 };
my $key = '-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes';
open my $names, '>', "$dir/names" or die $!;
print {$names} "subjectAltName=DNS:localhost,IP:127.0.0.1\n";
close $names;
open my $others, '>', "$dir/others" or die $!;
print {$others} "subjectAltName=DNS:other.example\n";
close $others;
my $made = $run->("req -x509 $key -keyout ca.key -out ca.pem -days 2 -subj /CN=test-authority -addext basicConstraints=critical,CA:TRUE")
    && $run->("req $key -keyout server.key -out server.csr -subj /CN=server")
    && $run->('x509 -req -in server.csr -CA ca.pem -CAkey ca.key -set_serial 2 -days 2 -extfile names -out server.pem')
    && $run->('x509 -req -in server.csr -CA ca.pem -CAkey ca.key -set_serial 4 -days 2 -extfile others -out other.pem')
    && $run->("req $key -keyout client.key -out client.csr -subj /CN=somebody")
    && $run->('x509 -req -in client.csr -CA ca.pem -CAkey ca.key -set_serial 3 -days 2 -out client.pem');
plan skip_all => 'openssl makes no certificates here' unless $made;

my @servers;
END { local $?; for my $server (@servers) { kill 'KILL', $server; waitpid $server, 0 } }

# A TLS server that answers with a page about the connection.
sub server {
    my (@more) = @_;
    my $free = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1') or die $!;
    my $port = $free->sockport;
    close $free;
    my $pid = fork;
    defined $pid or die $!;
    if (!$pid) {
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', '/dev/null';
        open STDERR, '>', '/dev/null';
        exec 'openssl', 's_server', '-accept', "127.0.0.1:$port", '-cert', "$dir/server.pem", '-key', "$dir/server.key", '-www', @more
            or do { require POSIX; POSIX::_exit(1) };
    }
    push @servers, $pid;
    for (1 .. 200) {
        IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port") and last;
        select undef, undef, undef, 0.05;
    }
    return $port;
}

# A proxy that allows tunnels.
sub tunnels {
    my $listener = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1') or die $!;
    my $pid = fork;
    defined $pid or die $!;
    if (!$pid) {
        while (my $client = $listener->accept) {
            my $head = '';
            while ($head !~ /\r\n\r\n\z/) { sysread $client, $head, 1, length $head or last }
            my ($to) = $head =~ /\ACONNECT (\S+)/ or next;
            my $server = IO::Socket::INET->new(PeerAddr => $to) or next;
            syswrite $client, "HTTP/1.1 200 Here you are\r\n\r\n";
            my $both = IO::Select->new($client, $server);
            TUNNEL: while (1) {
                for my $from ($both->can_read) {
                    sysread $from, my $piece, 65536 or last TUNNEL;
                    syswrite $from == $client ? $server : $client, $piece;
                }
            }
        }
        require POSIX;
        POSIX::_exit(0);
    }
    push @servers, $pid;
    return 'http://127.0.0.1:' . $listener->sockport;
}

# A server without TLS.
sub in_the_clear {
    my $listener = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1') or die $!;
    my $pid = fork;
    defined $pid or die $!;
    if (!$pid) {
        while (my $client = $listener->accept) {
            sysread $client, my $hello, 65536;
            syswrite $client, "HTTP/1.1 400 Bad Request\r\n\r\n";
        }
        require POSIX;
        POSIX::_exit(0);
    }
    push @servers, $pid;
    return $listener->sockport;
}

my $port = server();
my $url = "https://127.0.0.1:$port/";
my $status = sub { my ($given, $to) = @_; return HTTP::Haul->new(%$given)->get($to || $url) };
my $response = $status->({});
is($response->{status}, 599, 'unknown authority is 599');
like($response->{content}, qr/\ASSL connection failed for 127\.0\.0\.1:$port: /, 'message is that of HTTP::Tiny');
is($status->({ SSL_options => { SSL_ca_file => "$dir/ca.pem" } })->{status}, 200, 'SSL_ca_file is used');
for my $name ("\xc3\xbc.pem", "\xfc.pem", "\x{263a}.pem") {
    symlink "$dir/ca.pem", "$dir/$name" or die $!;
    my $http = HTTP::Haul->new(SSL_options => { SSL_ca_file => "$dir/$name" });
    ok($http->can_ssl, 'can_ssl finds a file with a name beyond ASCII');
    is($http->get($url)->{status}, 200, 'SSL_ca_file has a name beyond ASCII');
}
is($status->({ SSL_options => { SSL_ca_file => "$dir/ca.pem" } }, "https://localhost:$port/")->{status}, 200, 'certificate is valid for localhost');
is($status->({ http3 => 1, SSL_options => { SSL_ca_file => "$dir/ca.pem" } })->{status}, 200, 'http3 => 1 uses TCP where nothing answers by QUIC');
$response = $status->({ http3 => 'only', SSL_options => { SSL_ca_file => "$dir/ca.pem" } });
is($response->{status}, 599, "http3 => 'only' does not use TCP");
is($status->({ verify_SSL => 0 })->{status}, 200, 'verify_SSL => 0 skips verification');
is($status->({ verify_ssl => 0 })->{status}, 200, 'verify_ssl => 0 skips verification');
is($status->({ SSL_options => { SSL_verify_mode => 0 } })->{status}, 200, 'SSL_verify_mode => 0 skips verification');
{
    local $ENV{SSL_CERT_FILE} = "$dir/ca.pem";
    is($status->({})->{status}, 200, 'SSL_CERT_FILE is used');
}
# Authorities of the program are used in place of those of the environment.
$run->("req -x509 $key -keyout rival.key -out rival.pem -days 2 -subj /CN=rival-authority -addext basicConstraints=critical,CA:TRUE");
my ($ca_hash) = `openssl x509 -in '$dir/ca.pem' -noout -hash` =~ /([0-9a-f]+)/;
mkdir "$dir/$_" or die $! for qw(authorities none);
$run->("x509 -in ca.pem -out authorities/$ca_hash.0");
open my $rival, '<', "$dir/rival.pem" or die $!;
my $rival_pem = do { local $/; <$rival> };
for my $environment ([SSL_CERT_FILE => "$dir/ca.pem"], [SSL_CERT_DIR => "$dir/authorities"]) {
    local @ENV{qw(SSL_CERT_FILE SSL_CERT_DIR)};
    delete @ENV{qw(SSL_CERT_FILE SSL_CERT_DIR)};
    $ENV{ $environment->[0] } = $environment->[1];
    is($status->({})->{status}, 200, "$environment->[0] is used");
    for my $given ([SSL_ca_file => "$dir/rival.pem"], [SSL_ca_pem => $rival_pem], [SSL_ca_path => "$dir/none"]) {
        is($status->({ SSL_options => {@$given} })->{status}, 599, "$given->[0] replaces $environment->[0]");
    }
}
{
    local $ENV{PERL_HTTP_TINY_SSL_INSECURE_BY_DEFAULT} = 1;
    is($status->({})->{status}, 200, 'PERL_HTTP_TINY_SSL_INSECURE_BY_DEFAULT skips verification');
    is($status->({ verify_SSL => 1 })->{status}, 599, 'verify_SSL => 1 overrides the environment');
}

# The TLS session, of single requests and of a batch.
my $facts = HTTP::Haul->new(timings => 1, SSL_options => { SSL_ca_file => "$dir/ca.pem" });
for my $reply ($facts->get("https://localhost:$port/"), $facts->batch(["https://localhost:$port/"])) {
    my $connection = $reply->{connection};
    like("$connection->{tls_version} $connection->{cipher}", qr/\ATLSv1\.[23] TLS_\w+\z/, 'connection has the version and the cipher of TLS');
    open my $der, '>:raw', "$dir/seen.der" or die $!;
    print {$der} $connection->{certificates}[0];
    close $der;
    ok($run->('x509 -inform DER -in seen.der -out seen.pem') && $run->('verify -CAfile ca.pem seen.pem'), 'connection has the certificate');
}
my $text = sub { open my $file, '<', "$dir/$_[0]" or die $!; local $/; readline $file };
is($status->({ SSL_options => { SSL_ca_pem => $text->('ca.pem') } })->{status}, 200, 'CA certificates may be a PEM text');
for my $version ('TLSv1_2', 'TLSv1_3') {
    (my $name = $version) =~ tr/_/./;
    my $seen = HTTP::Haul->new(timings => 1, SSL_options => { SSL_version => $version, SSL_ca_file => "$dir/ca.pem" })->get("https://localhost:$port/");
    is($seen->{connection}{tls_version}, $name, "$version is used");
}
$run->('x509 -in server.pem -pubkey -noout -out pub.pem') && $run->('pkey -pubin -in pub.pem -outform DER -out pub.der')
    && $run->('dgst -sha256 -hex -out pub.hash pub.der');
my ($hash) = $text->('pub.hash') =~ /([0-9a-f]{64})/;
my $pinned = sub { $status->({ SSL_options => { SSL_fingerprint => $_[0], SSL_ca_file => "$dir/ca.pem" } })->{status} };
is($pinned->(['sha256$pub$' . '0' x 64, "sha256\$pub\$$hash"]), 200, 'pinned key is accepted');
is($pinned->('sha256$pub$' . '0' x 64), 599, 'key that is not pinned is 599');
for my $wrong ({ SSL_fingerprint => 'sha1$00' }, { SSL_version => 'SSLv3' }) {
    my ($name) = keys %$wrong;
    ok(!eval { $status->({ SSL_options => $wrong }); 1 } && $@ =~ /$name is/, "malformed $name dies");
}
my $head;
HTTP::Haul->new(on_step => sub { $head = $_[1]{connection} if $_[0] eq 'done' }, SSL_options => { SSL_ca_file => "$dir/ca.pem" })
    ->get("https://localhost:$port/");
ok($head->{cipher}, 'last step has the cipher of TLS');
my $changed = HTTP::Haul->new(keep_alive => 0, SSL_options => { SSL_ca_file => "$dir/ca.pem" });
is($changed->get($url)->{status}, 200, 'authority is trusted');
$changed->SSL_options->{SSL_ca_file} = "$dir/none.pem";
is($changed->get($url)->{status}, 599, 'SSL_options can be changed in place');
ok(!exists $status->({ SSL_options => { SSL_ca_file => "$dir/ca.pem" } })->{connection}, 'connection is off by default');

$response = HTTP::Haul->new(SSL_options => { SSL_ca_file => "$dir/ca.pem" })->get("https://other.invalid:$port/", { peer => '127.0.0.1' });
is($response->{status}, 599, 'certificate for another name is 599');
is(HTTP::Haul->new(SSL_options => { SSL_ca_file => "$dir/none.pem" })->get($url)->{status}, 599, 'missing CA file is 599');
ok(!eval { HTTP::Haul->new(SSL_options => { SSL_cipher_list => 'x' })->get($url); 1 }, 'unknown SSL option dies');
for my $scheme ('none', sub { 1 }) {
    for my $given ({ verify_SSL => 1 }, { verify_SSL => 0, mode => 1 }) {
        my %ssl = (SSL_verifycn_scheme => $scheme, $given->{mode} ? (SSL_verify_mode => 1) : ());
        ok(!eval { HTTP::Haul->new(verify_SSL => $given->{verify_SSL}, SSL_options => \%ssl)->get($url); 1 }, 'SSL_verifycn_scheme does not disable verification');
    }
}
is($status->({ SSL_options => { SSL_verify_mode => 0, SSL_verifycn_scheme => 'none' } })->{status}, 200, 'SSL_verifycn_scheme is accepted without verification');
# A certificate without a subjectAltName.
open my $no_names, '>', "$dir/no_names" or die $!;
print {$no_names} "basicConstraints=CA:FALSE\n";
close $no_names;
$run->("req $key -keyout cn.key -out cn.csr -subj /CN=localhost") && $run->('x509 -req -in cn.csr -CA ca.pem -CAkey ca.key -set_serial 5 -days 2 -extfile no_names -out cn.pem');
my $cn_port = server('-cert', "$dir/cn.pem", '-key', "$dir/cn.key");
is($status->({ SSL_options => { SSL_ca_file => "$dir/ca.pem" } }, "https://localhost:$cn_port/")->{status}, 200, 'common name counts below SSL_ca_file');
is($status->({ SSL_options => { SSL_ca_file => "$dir/ca.pem" } }, "https://127.0.0.1:$cn_port/")->{status}, 599, 'common name is compared');
my $http = HTTP::Haul->new;
is($http->get($url)->{status}, 599, 'unknown authority is refused');
$http->SSL_options({ SSL_ca_file => "$dir/ca.pem" });
is($http->get($url)->{status}, 200, 'changed SSL_options are used');
$http->SSL_options(undef);
is($http->get($url)->{status}, 599, 'removed SSL_options are not used');
like($http->get("http://127.0.0.1:$port/")->{status}, qr/\A(?:599|400|200)\z/, 'http request to a TLS port fails');

my $strict = server('-Verify', '1', '-CAfile', "$dir/ca.pem");
my %ca = (SSL_ca_file => "$dir/ca.pem");
is($status->({ SSL_options => \%ca }, "https://127.0.0.1:$strict/")->{status}, 599, 'missing client certificate is 599');
is($status->({ SSL_options => { %ca, SSL_cert_file => "$dir/client.pem", SSL_key_file => "$dir/client.key" } }, "https://127.0.0.1:$strict/")->{status},
    200, 'client certificate is sent');
is($status->({ SSL_options => { %ca, SSL_cert_pem => $text->('client.pem') . $text->('client.key') } }, "https://127.0.0.1:$strict/")->{status},
    200, 'client certificate may be a PEM text');

SKIP: {
    eval { require LWP::UserAgent; require LWP::Protocol::haul } or skip 'LWP is not installed', 33;
    my $get = sub { return LWP::UserAgent->new(@_)->get($url) };
    my $response = $get->();
    is($response->code, 500, 'LWP: unknown authority is 500');
    is($response->message, "Can't connect to 127.0.0.1:$port (certificate verify failed)", 'LWP: message is that of LWP');
    like($response->content, qr/\n\n\S.*certificate/, 'LWP: content has the reason');
    my $ua = LWP::UserAgent->new(ssl_opts => { SSL_ca_file => "$dir/ca.pem" });
    my $other = server('-cert', "$dir/other.pem");
    is($ua->get("https://127.0.0.1:$other/")->message, "Can't connect to 127.0.0.1:$other (hostname verification failed)", 'LWP: certificate for another name has the message of LWP');
    my $clear = in_the_clear();
    is($ua->get("https://localhost:$cn_port/")->code, 200, 'LWP: common name counts below SSL_ca_file');
    like($ua->get("https://127.0.0.1:$clear/")->message, qr/\ACan't connect to 127.0.0.1:$clear \(SSL connect attempt failed: /, 'LWP: server without TLS has the message of LWP');
    is($get->(ssl_opts => { verify_hostname => 0 })->code, 200, 'LWP: verify_hostname => 0 skips verification');
    is($get->(ssl_opts => { SSL_ca_file => "$dir/ca.pem" })->code, 200, 'SSL_ca_file is used');
    is($get->(ssl_opts => { SSL_verify_mode => 0 })->code, 500, 'LWP: SSL_verify_mode => 0 alone keeps verification');
    is($get->(ssl_opts => { verify_hostname => 1, SSL_verify_mode => 0 })->code, 500, 'LWP: verify_hostname => 1 keeps verification');
    is($get->(ssl_opts => { SSL_verifycn_scheme => 'none' })->code, 500, 'LWP: SSL_verifycn_scheme keeps verification');
    is($get->(ssl_opts => { verify_hostname => 0, SSL_verify_mode => 0 })->code, 200, 'LWP: both options together skip verification');
    {
        # LWP's own protocol would do these, were it installed; the second is of no authority that
        # is known.
        my $requests = $LWP::Protocol::haul::REQUESTS;
        $get->(ssl_opts => { verify_hostname => 0, @$_ }) for [SSL_ca_file => "$dir/ca.pem"], [SSL_verify_mode => 1];
        is($LWP::Protocol::haul::REQUESTS, $requests, 'LWP: verification of the chain alone is left to LWP');
    }
    {
        local $ENV{PERL_LWP_SSL_CA_FILE} = "$dir/ca.pem";
        is($get->()->code, 200, 'LWP: PERL_LWP_SSL_CA_FILE is used');
    }
    SKIP: {
        eval { require LWP::Protocol::https } or skip 'LWP::Protocol::https is not installed', 18;
        my $tunnelled = sub { my $ua = LWP::UserAgent->new(ssl_opts => {@_}); $ua->proxy(https => tunnels()); return $ua->get($url)->code };
        my $requests = $LWP::Protocol::haul::REQUESTS;
        is($tunnelled->(verify_hostname => 0, SSL_ca_file => "$dir/ca.pem"), 200, 'what LWP does itself, through a proxy');
        my $with = sub { $get->(ssl_opts => { SSL_ca_file => "$dir/ca.pem", @_ })->code };
        is($with->(SSL_version => 'TLSv1_2'), 200, 'an option of IO::Socket::SSL\'s');
        is($with->(SSL_verify_callback => sub { 0 }), 500, 'which counts');
        is($LWP::Protocol::haul::REQUESTS, $requests, 'not by haul');
        is(LWP::Protocol::implementor('https'), 'LWP::Protocol::haul', 'which does all else');
        # Defaults of IO::Socket::SSL's are obeyed as well, whoever has loaded it and when.
        for my $set (qw(set_ctx_defaults set_defaults set_client_defaults)) {
            IO::Socket::SSL->can($set)->(SSL_verify_callback => sub { 0 });
            is($with->(), 500, "$set counts");
            is($LWP::Protocol::haul::REQUESTS, $requests, 'not by haul');
            IO::Socket::SSL->can($set)->(SSL_verify_callback => undef);
        }
        IO::Socket::SSL::context_init(SSL_verify_callback => sub { 0 });
        $with->();
        is($LWP::Protocol::haul::REQUESTS, $requests, 'context_init counts');
        IO::Socket::SSL::context_init({});
        IO::Socket::SSL::set_args_filter_hack(sub { $_[1]{SSL_verify_callback} = sub { 0 } });
        is($with->(), 500, 'set_args_filter_hack counts');
        is($LWP::Protocol::haul::REQUESTS, $requests, 'not by haul');
        ${ LWP::Protocol::haul::_lexical(set_args_filter_hack => '$FILTER_SSL_ARGS') } = undef;
        IO::Socket::SSL::default_ca("$dir/other.pem");
        is($get->()->code, 500, 'default_ca counts');
        is($LWP::Protocol::haul::REQUESTS, $requests, 'not by haul');
        IO::Socket::SSL::default_ca(undef);
        is($with->(), 200, 'without defaults');
        is($LWP::Protocol::haul::REQUESTS, $requests + 1, 'by haul again');
    }
    local $ENV{PERL_LWP_SSL_VERIFY_HOSTNAME} = 0;
    is($get->()->code, 200, 'PERL_LWP_SSL_VERIFY_HOSTNAME=0');
}
done_testing;
