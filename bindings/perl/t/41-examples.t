use strict;
use warnings;
use lib '.';
use Test::More;
use File::Temp qw(tempdir);
use t::Server;

# The programs of examples/, run as a user runs them.
delete @ENV{qw(http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY no_proxy PERL_LWP_ENV_PROXY)};

my (%tries, @added);
my $html = sub { [200, { 'Content-Type' => 'text/html' }, $_[0]] };
my $json = sub { [200, { 'Content-Type' => 'application/json' }, $_[0]] };
my $server = t::Server->start(sub {
    my ($request) = @_;
    my ($method, $target, $headers, $body) = @$request{qw(method target headers body)};
    my $base = "http://$headers->{host}";
    my $try = ++$tries{"$method $target"};
    # A site.
    return $html->('<a href="/a">a</a> <a class="x" href="/b">b</a> <a href="https://other.invalid/">other</a>') if $target eq '/';
    return $html->(qq(<a href="$base/c">c</a> <a href="/">start</a>)) if $target eq '/a';
    return $html->('<a href="/none">none</a>') if $target eq '/c';
    return $html->('no link') if $target eq '/b';
    # A file, whose server is busy at first.
    return [503, { 'Retry-After' => 0 }, 'busy'] if $target eq '/file' && $try == 1;
    return [200, {}, 'f' x 3_000_000] if $target eq '/file';
    # An API.
    if ($target =~ m{\A/items}) {
        return [401, {}, 'no token'] unless ($headers->{authorization} || '') eq 'Bearer secret';
        return [503, {}, 'busy'] if $try == 1;
        if ($method eq 'POST') {
            return [400, {}, 'no key'] unless $headers->{'idempotency-key'};
            push @added, $body =~ /"name":"(\w+)"/;
            return $json->($body);
        }
        return $json->(qq({"items":[{"name":"one"},{"name":"two"}],"next":"$base/items?page=2"})) if $target eq '/items';
        return $json->('{"items":[' . join(',', map { qq({"name":"$_"}) } @added) . ']}');
    }
    # Uploads.
    return [201, {}, '', $headers->{'content-length'} == length $body ? 'Created' : 'Incomplete'] if $target eq '/upload' && $method eq 'PUT';
    return [200, {}, '', 'Got ' . (() = $body =~ /filename=/g)] if $target eq '/upload';
    # A login.
    return $html->('<form action="/login" method="post"><input name="user"><input type="password" name="password"></form>') if $target eq '/form';
    if ($target eq '/login') {
        return $html->('wrong') if $body ne 'user=me&password=secret';
        return [302, { Location => '/welcome', 'Set-Cookie' => 'session=7; Path=/' }, ''];
    }
    return [200, {}, ($headers->{cookie} || '') =~ /session=7/ ? 'hello' : 'who?'] if $target =~ m{\A/(?:welcome|inside)\z};
    return [404, {}, 'no'];
});
my $dir = tempdir(CLEANUP => 1);

# Returns the standard output of an example, its standard error and its exit code.
sub run {
    my ($name, @arguments) = @_;
    my $pid = open my $out, '-|';
    die "cannot fork: $!" unless defined $pid;
    if (!$pid) {
        open STDERR, '>', "$dir/stderr" or die "cannot redirect: $!";
        exec $^X, (map { "-I$_" } @INC), "examples/$name", @arguments or die "cannot run: $!";
    }
    my $text = do { local $/; <$out> };
    close $out;
    my $code = $? >> 8;
    open my $in, '<', "$dir/stderr" or die "cannot read: $!";
    my $errors = do { local $/; <$in> };
    return (defined $text ? $text : '', defined $errors ? $errors : '', $code);
}
sub file {
    my ($name, $content) = @_;
    open my $out, '>', "$dir/$name" or die "cannot write: $!";
    print {$out} $content;
    close $out;
    return "$dir/$name";
}

my ($out, $errors, $code) = run('crawler.pl', $server->url('/'));
is_deeply([sort split /\n/, $out], [sort map { ($_ eq '/none' ? '404 ' : '200 ') . $server->url($_) } qw(/ /a /b /c /none)], 'crawler visits each page once');
is("$errors$code", "5 pages\n0", 'crawler counts the pages');

($out, $errors, $code) = run('download.pl', $server->url('/file'), "$dir/downloaded");
is("$out$code", "$dir/downloaded: 3000000 bytes\n0", 'downloader writes the file') or diag $errors;
is(-s "$dir/downloaded", 3_000_000, 'file is complete');
like($errors, qr/status 503.*100 %/s, 'downloader shows the retry and the progress');
($out, $errors, $code) = run('download.pl', $server->url('/none'), "$dir/missing");
ok($code && !-e "$dir/missing" && !-e "$dir/missing.part", 'downloader leaves no file after an error');

{
    local $ENV{API_TOKEN} = 'secret';
    ($out, $errors, $code) = run('api.pl', $server->url('/items'), 'three');
    is("$out$code", "added three\none\ntwo\nthree\n0", 'API client lists all pages') or diag $errors;
    local $ENV{API_TOKEN} = 'wrong';
    ($out, $errors, $code) = run('api.pl', $server->url('/items'));
    like("$errors$code", qr/401 .*[1-9]/s, 'API client reports a refusal');
}

my @files = (file('one', '1' x 200_000), file('two', '2'));
($out, $errors, $code) = run('upload.pl', $server->url('/upload'), $files[0]);
is("$out$code", "201 Created\n0", 'uploader sends a file');
like($errors, qr/200000 of 200000 bytes/, 'uploader shows the progress');
($out, $errors, $code) = run('upload.pl', $server->url('/upload'), @files);
is("$out$code", "200 Got 2\n0", 'uploader sends a form') or diag $errors;

SKIP: {
    eval { require WWW::Mechanize; 1 } or skip 'WWW::Mechanize is not installed', 2;
    local @ENV{qw(SITE_USER SITE_PASSWORD)} = qw(me secret);
    ($out, $errors, $code) = run('login.pl', $server->url('/form'), $server->url('/inside'));
    is("$out$code", "after the login: /welcome\nhello\n0", 'login follows the 302 with the cookie') or diag $errors;
    local $ENV{SITE_PASSWORD} = 'wrong';
    ($out, $errors, $code) = run('login.pl', $server->url('/form'), $server->url('/inside'));
    like($errors, qr/login was refused/, 'login that is refused is an error');
}
done_testing;
