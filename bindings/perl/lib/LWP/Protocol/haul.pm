package LWP::Protocol::haul;

use strict;
use warnings;

use Haul ();
use HTTP::Response ();
use HTTP::Status   ();
use LWP::Protocol  ();

our @ISA = ('LWP::Protocol');
our $VERSION = '0.1.0';

# Whether connections are kept for later requests. Not what LWP does without a keep_alive of its own, but the reason to be
# here; HAUL_LWP_KEEP_ALIVE=0 in the environment turns it off for servers that mind.
our $KEEP_ALIVE = defined $ENV{HAUL_LWP_KEEP_ALIVE} ? $ENV{HAUL_LWP_KEEP_ALIVE} : 1;

# How many requests were made here by this process.
our $REQUESTS = 0;

LWP::Protocol::implementor($_, __PACKAGE__) for qw(http https);

# The engine for a user agent's settings as they are now; kept with it, and its connections with it.
sub _engine {
    my ($ua, $scheme, $proxy, $timeout) = @_;
    my $ssl = $scheme eq 'https' ? $ua->{ssl_opts} || {} : {};
    my $key = join "\0", $KEEP_ALIVE ? 1 : 0, map { defined $_ ? $_ : '' } $timeout, $ua->{local_address}, $proxy,
        map { ($_, $ssl->{$_}) } sort keys %$ssl;
    my $engines = $ua->{'LWP::Protocol::haul'} ||= {};
    return $engines->{$key} ||= do {
        # A program that changes its settings all the time does not keep all of them.
        %$engines = () if keys %$engines >= 16;
        my $engine = Haul::Engine->_new;
        $engine->_set(redirects  => 0);
        $engine->_set(without    => $_) for qw(Accept Expect Proxy-Connection);
        $engine->_set(user_agent => undef);
        # A program that says Expect is waited for as long as LWP waits; nobody else asks.
        $engine->_set(expect_timeout => 2);
        $engine->_set(keep_alive => $KEEP_ALIVE);
        $engine->_set($_         => $timeout) for qw(connect_timeout idle_timeout);
        $engine->_set(interface  => $ua->{local_address});
        $engine->_set(proxies => ["$proxy", "$proxy"]) if $proxy;
        _tls($engine, $ssl) if $scheme eq 'https';
        $engine;
    };
}

# LWP's names, and IO::Socket::SSL's. What is not known is refused: it may be what makes the connection safe.
sub _tls {
    my ($engine, $ssl) = @_;
    my %given = %$ssl;
    my $verify = exists $given{verify_hostname} ? $given{verify_hostname} : 1;
    $verify = 1 if !exists $given{verify_hostname} && $given{SSL_verify_mode};
    $verify = 0 if exists $given{SSL_verify_mode} && !$given{SSL_verify_mode};
    $verify = 0 if defined $given{SSL_verifycn_scheme} && $given{SSL_verifycn_scheme} eq 'none';
    $engine->_set(verify  => $verify);
    $engine->_set(ca_file => defined $given{SSL_ca_file} ? $given{SSL_ca_file} : $ENV{PERL_LWP_SSL_CA_FILE} || $ENV{HTTPS_CA_FILE});
    $engine->_set(ca_path => defined $given{SSL_ca_path} ? $given{SSL_ca_path} : $ENV{PERL_LWP_SSL_CA_PATH} || $ENV{HTTPS_CA_DIR});
    $engine->_set(certificate => [@given{qw(SSL_cert_file SSL_key_file)}]) if defined $given{SSL_cert_file};
    delete @given{ qw(verify_hostname SSL_verify_mode SSL_verifycn_scheme SSL_ca_file SSL_ca_path SSL_cert_file SSL_key_file SSL_use_cert) };
    for my $name (sort keys %given) {
        die "ssl_opts: '$name' is not supported by LWP::Protocol::haul\n" if defined $given{$name};
    }
    return;
}

# The fields to send, as a list, and the content.
sub _outgoing {
    my ($request, $url) = @_;
    my $headers = $request->headers;
    my @fields;
    $headers->scan(sub {
        my ($name, $value) = @_;
        $name =~ s/\A://;
        # What is for the proxy does not go through its tunnel.
        return if lc $name eq 'proxy-authorization' && $url->scheme eq 'https';
        $value =~ tr/\r\n/  /;
        push @fields, $name, $value;
    });
    if (defined(my $user = $url->userinfo)) {
        if (!defined $headers->header('Authorization')) {
            require MIME::Base64;
            require URI::Escape;
            push @fields, Authorization => 'Basic ' . MIME::Base64::encode_base64(URI::Escape::uri_unescape($user), '');
        }
    }
    my $content = $request->content_ref;
    $content = $$content if ref $$content;
    my $length = $headers->header('Content-Length');
    if (ref $content eq 'CODE') {
        return (\@fields, defined $length && !$length ? undef : $content);
    }
    my $size = defined $$content ? length $$content : 0;
    if ($size) {
        warn 'Content-Length header value was wrong, fixed' if defined $length && $length ne $size;
        return (\@fields, $$content);
    }
    warn 'Content-Length set when there is no content, fixed' if $length;
    # An empty POST says so where the program did.
    return (\@fields, defined $length ? '' : undef);
}

# Whether anyone wants to see the reply before it is complete.
sub _wants_stream {
    my ($ua, $arg, $size_hint) = @_;
    return 1 if defined $arg || defined $ua->{max_size} || $ua->{show_progress};
    my $handlers = $ua->{handlers} or return 0;
    return 1 if $handlers->{response_data} && @{ $handlers->{response_data} };
    for my $handler (@{ $handlers->{response_header} || [] }) {
        # LWP's own one looks at the head of HTML pages, and takes it in one piece as well.
        return 1 unless defined $handler->{owner} && $handler->{owner} eq 'LWP::UserAgent::parse_head';
    }
    return 0;
}

# In LWP's words, where programs look for them.
sub _die {
    my ($status, $text, $url, $proxy) = @_;
    my $at = $proxy ? $proxy->host_port : $url->host_port;
    $text =~ s{\A\S+://\S+: }{};
    die "establishing SSL tunnel failed: $1 " . (HTTP::Status::status_message($1) || '') . "\n"
        if $text =~ /CONNECT tunnel failed, response ([0-9]{3})/;
    die "Can't connect to $at (Connection timed out)\n\n$text\n" if $status == 28 && $text =~ /connect/i;
    die "read timeout: $text\n" if $status == 28;
    die "Can't connect to $at ($text)\n\n$text\n" if grep { $status == $_ } 5, 6, 7, 35, 45, 60, 97;
    die "$text\n";
}

sub request {
    my ($self, $request, $proxy, $arg, $size, $timeout) = @_;
    my ($ua, $method, $url) = ($self->{ua}, $request->method, $request->uri);
    if ($method !~ /\A[A-Za-z0-9_!\#\$%&'*+\-.^`|~]+\z/) {
        return HTTP::Response->new(HTTP::Status::RC_BAD_REQUEST(), "Library does not allow method $method for '" . $url->scheme . ":' URLs");
    }
    # A proxy for ftp and its like: LWP asks here because the proxy is an http one, but haul's URLs are http and https.
    if ($url->scheme !~ /\Ahttps?\z/) {
        require LWP::Protocol::http;
        return LWP::Protocol::http->new('http', $ua)->request($request, $proxy, $arg, $size, $timeout);
    }
    $REQUESTS++;
    my $engine = _engine($ua, $url->scheme, $proxy, $timeout);
    my ($fields, $content) = _outgoing($request, $url);
    my $text = $url->as_string;
    $text =~ s/#.*//s;
    $text =~ s{\A([^/]+//)[^/?\@]*\@}{$1};
    my $stream = _wants_stream($ua, $arg);
    my ($code, $message, $protocol, $list, $body, $peer, $status, $error)
        = $stream ? $engine->_open($method, $text, $fields, $content) : $engine->_call($method, $text, $fields, $content);
    _die($status, $error, $url, $proxy) unless defined $code;

    my $response = HTTP::Response->new($code, $message);
    $response->protocol($protocol);
    {
        local $HTTP::Headers::TRANSLATE_UNDERSCORE;
        $response->push_header(@$list);
    }
    $response->request($request);
    $response->push_header('Client-Peer' => $peer) if defined $peer;
    if (my @codings = $response->remove_header('Transfer-Encoding')) {
        $response->push_header('Client-Transfer-Encoding' => \@codings);
    }
    $response->push_header('Client-Response-Num' => ++$self->{responses});

    if ($stream) {
        $size ||= 4096;
        $response = $self->collect($arg, $response, sub { my $piece = $body->read($size); return \$piece });
        my $trailers = $body->trailers;
        local $HTTP::Headers::TRANSLATE_UNDERSCORE;
        $response->push_header(@$trailers) if @$trailers;
        return $response;
    }
    # Nobody looks on: the whole body at once, and what broke it off after it.
    if (!defined $error && !_looks_at($ua, $response)) {
        $response->content_ref(\$body) if length $body;
        return $response;
    }
    my $given;
    return $self->collect($arg, $response, sub {
        return \$body if !$given++ && length $body;
        die "read failed: $error\n" if defined $error;
        return \'';
    });
}

sub _looks_at {
    my ($ua, $response) = @_;
    my $handlers = $ua->{handlers} or return 0;
    return 0 unless $handlers->{response_header} && @{ $handlers->{response_header} };
    return $response->content_type =~ m{\Atext/html\z|xhtml}i;
}

1;
