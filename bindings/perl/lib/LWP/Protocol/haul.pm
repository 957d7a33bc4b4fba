package LWP::Protocol::haul;

use strict;
use warnings;

use HTTP::Haul ();
use HTTP::Headers  ();
use HTTP::Request  ();
use HTTP::Response ();
use HTTP::Status   ();
use LWP::Protocol  ();
use Scalar::Util qw(refaddr reftype weaken);

our @ISA = ('LWP::Protocol');
our $VERSION = '0.1.0';

# Keeps connections for later requests, which LWP does only with keep_alive. HAUL_LWP_KEEP_ALIVE=0
# in the environment turns this off; with "all", a POST may use a kept connection, too.
our $KEEP_ALIVE = defined $ENV{HAUL_LWP_KEEP_ALIVE} ? $ENV{HAUL_LWP_KEEP_ALIVE} : 1;

# The methods that haul sends again if a kept connection turns out to be closed (RFC 9110 section
# 9.2.2).
my %is_repeated = map { ($_ => 1) } qw(GET HEAD OPTIONS TRACE PUT DELETE);

# The number of requests that this module has made in this process.
our $REQUESTS = 0;

LWP::Protocol::implementor($_, __PACKAGE__) for qw(http https);

# The engines that user agents share, by settings. With separate engines, two user agents would have
# two connections to a server that may handle only one.
my %shared;

# Returns the state that a user agent keeps: `engines`, by settings; `owner`, a weak reference to
# the user agent; `is_alone` if it shares no engines. A clone of a user agent has the hash of its
# original, and gets another one here.
sub _kept {
    my ($ua) = @_;
    my $kept = $ua->{'LWP::Protocol::haul'};
    return $kept if $kept && defined $kept->{owner} && refaddr $kept->{owner} == refaddr $ua;
    $kept = $ua->{'LWP::Protocol::haul'} = { owner => $ua, engines => {} };
    weaken($kept->{owner});
    return $kept;
}

# The engine for the current settings of a user agent, which keeps it. `$logs_in`: the request may
# authenticate its connection (NTLM, Negotiate). Another user agent must not use such a connection,
# so this one has its own engines from then on.
sub _engine {
    my ($ua, $is_secure, $proxy, $timeout, $is_old, $logs_in) = @_;
    my $kept = _kept($ua);
    if ($logs_in && !$kept->{is_alone}) {
        $kept->{is_alone} = 1;
        $kept->{engines} = {};
    }
    my $is_shared = !$kept->{is_alone};
    my $ssl = $is_secure && $ua->{ssl_opts} || {};
    # conn_cache(undef) keeps no connections.
    my $keeps = $KEEP_ALIVE && (defined $ua->{conn_cache} || !exists $ua->{conn_cache}) ? 1 : 0;
    no warnings 'uninitialized';
    my $key = "$keeps\0$is_old\0$timeout\0$ua->{local_address}\0$proxy";
    $key = join "\0", $key, map { ($_, $ssl->{$_}) } sort keys %$ssl if $is_secure;
    my $engines = $kept->{engines};
    return $engines->{$key} ||= $is_shared && $shared{$key} || do {
        # Limits the number of engines of a program that keeps changing its settings.
        %$engines = () if keys %$engines >= 16;
        delete @shared{ grep { !defined $shared{$_} } keys %shared };
        my $engine = HTTP::Haul::Engine->_new;
        $engine->_set(redirects  => 0);
        $engine->_set(without    => $_) for qw(Accept Expect Proxy-Connection);
        $engine->_set(user_agent => undef);
        # A request with Expect waits as long as in LWP.
        $engine->_set(expect_timeout => 2);
        $engine->_set(keep_alive => $keeps);
        # Paths are sent unchanged, as in LWP: they may be signed.
        $engine->_set(raw_path   => 1);
        # A response without a head is accepted, as in LWP: test servers send it.
        $engine->_set(headless   => 1);
        $engine->_set($_         => $timeout) for qw(connect_timeout idle_timeout);
        $engine->_set(interface  => $ua->{local_address});
        $engine->_set(proxies => ["$proxy", "$proxy"]) if $proxy;
        $engine->_set(http => 10) if $is_old;
        _tls($engine, $ssl) if $is_secure;
        weaken($shared{$key} = $engine) if $is_shared;
        $engine;
    };
}

# The ssl_opts that haul knows. With another one LWP's own module makes the request: the option may
# be what makes the connection safe.
my %is_known = map { ($_ => 1) }
    qw(verify_hostname SSL_verify_mode SSL_verifycn_scheme SSL_ca_file SSL_ca_path SSL_cert_file SSL_key_file SSL_use_cert);

sub _tls {
    my ($engine, $ssl) = @_;
    my %given = %$ssl;
    # As in LWP, verify_hostname verifies the chain, too, whatever SSL_verify_mode is. LWP's own
    # module verifies a chain without the name, so otherwise nothing is verified here.
    my $verify = !exists $given{verify_hostname} || $given{verify_hostname} ? 1 : 0;
    $engine->_set(verify  => $verify);
    $engine->_set(ca_file => defined $given{SSL_ca_file} ? $given{SSL_ca_file} : $ENV{PERL_LWP_SSL_CA_FILE} || $ENV{HTTPS_CA_FILE});
    $engine->_set(ca_path => defined $given{SSL_ca_path} ? $given{SSL_ca_path} : $ENV{PERL_LWP_SSL_CA_PATH} || $ENV{HTTPS_CA_DIR});
    $engine->_set(certificate => [@given{qw(SSL_cert_file SSL_key_file)}]) if defined $given{SSL_cert_file};
    return;
}

# True if HTTP::Headers, HTTP::Request and HTTP::Response are the hashes that this module knows. Then
# C reads and fills them directly; otherwise their methods are called.
my @unset;
my $is_plain = do {
    my $headers = HTTP::Headers->new;
    $headers->push_header('ETag', 1, 'X-haul', 2, 'X-Haul', 3);
    (reftype $headers || '') eq 'HASH' && join(' ', sort keys %$headers) eq '::std_case etag x-haul' && $headers->{etag} eq 1
        && ref $headers->{'x-haul'} eq 'ARRAY' && "@{ $headers->{'x-haul'} }" eq '2 3'
        && ref $headers->{'::std_case'} eq 'HASH' && ($headers->{'::std_case'}{'x-haul'} || '') eq 'X-Haul';
} && do {
    my $response = HTTP::Response->new(299, 'a');
    $response->protocol('b');
    $response->request('c');
    $response->content('d');
    my %made = %$response;
    my $headers = delete $made{_headers};
    # Other keys have no value yet.
    @unset = grep { !defined $made{$_} } keys %made;
    delete @made{@unset};
    ref $headers eq 'HTTP::Headers' && join(' ', map { "$_=$made{$_}" } sort keys %made) eq '_content=d _msg=a _protocol=b _rc=299 _request=c';
} && do {
    my $request = HTTP::Request->new('a', 'http://b/', undef, 'c');
    my %made = %$request;
    my ($url, $headers) = delete @made{qw(_uri _headers)};
    delete @made{ grep { !defined $made{$_} } keys %made };
    ref $url eq 'URI::http' && (reftype $url) eq 'SCALAR' && $$url eq 'http://b/' && ref $headers eq 'HTTP::Headers'
        && join(' ', map { "$_=$made{$_}" } sort keys %made) eq '_content=c _method=a';
};

# The spelling of a field name that HTTP::Headers stores, if any. C asks once for each name.
sub _standard {
    my ($name) = @_;
    local $HTTP::Headers::TRANSLATE_UNDERSCORE;
    my $headers = HTTP::Headers->new;
    $headers->push_header($name, 1);
    return ($headers->{'::std_case'} || {})->{ lc $name };
}

# The names that HTTP::Headers sorts by their kind, before all other names.
my @sorted = qw(
    Cache-Control Connection Date Pragma Trailer Transfer-Encoding Upgrade Via Warning
    Accept Accept-Charset Accept-Encoding Accept-Language Authorization Expect From Host If-Match If-Modified-Since
    If-None-Match If-Range If-Unmodified-Since Max-Forwards Proxy-Authorization Range Referer TE User-Agent
    Accept-Ranges Age ETag Location Proxy-Authenticate Retry-After Server Vary WWW-Authenticate
    Allow Content-Encoding Content-Language Content-Length Content-Location Content-MD5 Content-Range Content-Type
    Expires Last-Modified
);
my %places;

# Returns the place of a field name in the order of HTTP::Headers (0: none), and its spelling there.
# C asks once for each name.
sub _place {
    my ($key) = @_;
    if (!%places) {
        my $place = 0;
        # "!" is the first of the other names.
        for my $name (HTTP::Headers->new(map { $_ => 1 } '!', @sorted)->header_field_names) {
            last if $name eq '!';
            $places{ lc $name } = [++$place, $name];
        }
    }
    return @{ $places{$key} || [0, $key] };
}

# Returns the fields to send as a list, the content, and whether the fields may authenticate the
# connection. Removes the user from the URL.
sub _outgoing {
    my ($request, $url, $is_secure) = @_;
    my ($length, $authorized, $logs_in, @fields);
    $request->headers->scan(sub {
        my ($name, $value) = @_;
        $name = substr $name, 1 if ord $name == 58;
        $value =~ tr/\r\n/  /;
        if ($name eq 'Content-Length') { $length = $value }
        elsif ($name eq 'Authorization' || $name eq 'Proxy-Authorization') {
            # A field for the proxy must not go through its tunnel.
            return if $is_secure && $name eq 'Proxy-Authorization';
            $authorized = 1 if $name eq 'Authorization';
            $logs_in = 1 if $value =~ /\A(?:NTLM|Negotiate)\b/i;
        }
        push @fields, $name, $value;
    });
    if ($$url =~ s{\A([^:/]+://)([^/?]*)\@}{$1} && !$authorized && length $2) {
        my ($user, $password) = split /:/, $2, 2;
        require MIME::Base64;
        require URI::Escape;
        my $pair = join ':', map { URI::Escape::uri_unescape(defined $_ ? $_ : '') } $user, $password;
        push @fields, Authorization => 'Basic ' . MIME::Base64::encode_base64($pair, '');
    }
    my $content = $request->content_ref;
    $content = $$content if ref $$content;
    if (ref $content eq 'CODE') {
        return (\@fields, defined $length && !$length ? undef : _sent_once($content), $logs_in);
    }
    my $size = defined $$content ? length $$content : 0;
    if ($size) {
        warn 'Content-Length header value was wrong, fixed' if defined $length && $length ne $size;
        return (\@fields, $$content, $logs_in);
    }
    warn 'Content-Length set when there is no content, fixed' if $length;
    # An empty POST has a Content-Length if the program has set it.
    return (\@fields, defined $length && !$length ? '' : undef, $logs_in);
}

# The state of content callbacks, by address.
my %given;

# Wraps a content callback so that it dies if it would be sent a second time with less content. LWP
# calls the same code for the request after a redirect or a 401, and code at its end gives an empty
# body. Code that restarts at its end may be sent again.
sub _sent_once {
    my ($code) = @_;
    my $address = refaddr $code;
    my $last = $given{$address};
    my $is_again = $last && defined $last->{code} && _is_follow_up();
    delete @given{ grep { !defined $given{$_}{code} } keys %given };
    my $state = $given{$address} = { code => $code };
    weaken($state->{code});
    return sub {
        my $piece = $code->();
        my $is_empty = !defined $piece || !length $piece;
        die "the content callback was called to its end already: the request cannot be sent again\n"
            if $is_again && !$state->{begun} && ($is_empty && $last->{begun} || !$is_empty && !$last->{ended});
        $state->{begun} = 1 unless $is_empty;
        $state->{ended} = 1 if $is_empty;
        return $piece;
    };
}

# Returns whether LWP::UserAgent sends this request because of the response to another one.
sub _is_follow_up {
    my ($depth, $count) = (1, 0);
    while (my (undef, undef, undef, $name) = caller $depth++) {
        return 1 if $name eq 'LWP::UserAgent::request' && ++$count > 1;
    }
    return 0;
}

# Returns whether the program wants to see the response before it is complete.
sub _wants_stream {
    my ($ua, $arg, $size_hint) = @_;
    return 1 if defined $arg || defined $ua->{max_size} || $ua->{show_progress};
    # A subclass may override it, to learn the progress.
    return 1 if $ua->can('progress') != LWP::UserAgent->can('progress');
    my $handlers = $ua->{handlers} or return 0;
    return 1 if $handlers->{response_data} && @{ $handlers->{response_data} };
    for my $handler (@{ $handlers->{response_header} || [] }) {
        # LWP's own handler parses the head of HTML pages, which works with a complete body, too.
        return 1 unless defined $handler->{owner} && $handler->{owner} eq 'LWP::UserAgent::parse_head';
    }
    return 0;
}

# Dies with the messages of LWP, which programs compare with.
sub _die {
    my ($status, $text, $url, $proxy) = @_;
    my $at = $proxy ? $proxy->host_port : $url->host_port;
    $text =~ s{\A\S+://\S+: }{};
    die "establishing SSL tunnel failed: $1 " . (HTTP::Status::status_message($1) || '') . "\n"
        if $text =~ /CONNECT tunnel failed, response ([0-9]{3})/;
    die "Can't connect to $at (Connection timed out)\n\n$text\n" if $status == 28 && $text =~ /connect/i;
    # The first line becomes the message of the status line.
    die "read timeout\n\n$text\n" if $status == 28;
    if (grep { $status == $_ } 5, 6, 7, 35, 45, 60, 97) {
        # Programs retry after a temporary failure of the resolver, so it has its own message.
        my $short
            = $status == 6 || $status == 5
            ? ($text =~ /: (Temporary failure\b.*|Try again)/i ? $1 : 'Name or service not known')
            : $status == 60
            ? ($text =~ /: it is not valid for name / ? 'hostname verification failed' : 'certificate verify failed')
            : $text =~ /\ATLS handshake failed: (.+)/       ? "SSL connect attempt failed: $1"
            : $text =~ /: ([^:()]+?) \(os error [0-9]+\)/ ? $1
            :                                               $text;
        die "Can't connect to $at ($short)\n\n$text\n";
    }
    die "Status read failed: $1\n\n$text\n" if $text =~ /broke before the response: ([^:()]+?) \(os error [0-9]+\)/;
    die "Server closed connection without sending any data back\n" if $text =~ /closed the connection without a response/;
    die "$text\n";
}

# Returns whether the chain of a certificate has to be verified, but not its name.
sub _trusts_any_name {
    my $ssl = $_[0]{ssl_opts} or return 0;
    return 0 if !exists $ssl->{verify_hostname} || $ssl->{verify_hostname};
    return $ssl->{SSL_verify_mode} ? 1 : 0 if defined $ssl->{SSL_verify_mode};
    return defined $ssl->{SSL_ca_file} || defined $ssl->{SSL_ca_path};
}

# Returns whether ssl_opts has options that only IO::Socket::SSL knows.
sub _has_foreign_options {
    my $ssl = $_[0]{ssl_opts} or return 0;
    return grep { !$is_known{$_} && defined $ssl->{$_} } keys %$ssl;
}

# References to the variables in which IO::Socket::SSL stores its defaults. No function returns
# them, so they are looked up by name in the functions that set them.
my @ssl_defaults;
my @ssl_default_names = (
    [set_default_context => '$GLOBAL_SSL_ARGS'], [set_client_defaults => '$GLOBAL_SSL_CLIENT_ARGS'],
    [set_args_filter_hack => '$FILTER_SSL_ARGS'], [default_ca => '$ca_detected'],
);

# Returns whether the program has set defaults of IO::Socket::SSL, which LWP's own module obeys. If
# that is unknown, returns true.
sub _has_ssl_defaults {
    return 0 unless $INC{'IO/Socket/SSL.pm'};
    @ssl_defaults = map { _lexical(@$_) } @ssl_default_names unless @ssl_defaults;
    for my $place (@ssl_defaults) {
        return 1 unless ref $place;
        my $value = $$place;
        return 1 if ref $value eq 'HASH' ? grep { defined } values %$value : ref $value || defined $value && !$value;
    }
    return 0;
}

# Returns a reference to a lexical variable of a function of IO::Socket::SSL; undef if there is
# none.
sub _lexical {
    my ($function, $wanted) = @_;
    require B;
    my $code = IO::Socket::SSL->can($function) or return undef;
    my ($names, $values) = map { [$_->ARRAY] } B::svref_2object($code)->PADLIST->ARRAY;
    for my $at (0 .. $#$names) {
        my $name = $names->[$at];
        next unless $name->can('PV') && defined $name->PV && $name->PV eq $wanted;
        return $values->[$at]->object_2svref;
    }
    return undef;
}

# Returns whether LWP's own module has to make the request: it needs a socket (CONNECT, Upgrade) or
# options of IO::Socket, checks the certificate in a way that haul cannot, or has another scheme
# (ftp through a proxy).
sub _is_lwps_own {
    my ($request, $url, $ua, $is_secure) = @_;
    return 1 if $is_secure && (_trusts_any_name($ua) || _has_foreign_options($ua) || _has_ssl_defaults());
    no warnings 'once';
    return 1 if $url !~ /\Ahttps?:/i || @LWP::Protocol::http::EXTRA_SOCK_OPTS || $request->method eq 'CONNECT';
    my $headers = $request->headers;
    # Reads the hash directly if possible, because this runs for each request.
    my $is_here = $is_plain && ref $headers eq 'HTTP::Headers';
    return grep { $is_here ? exists $headers->{$_} : defined $headers->header($_) } 'upgrade', 'if-ssl-cert-subject';
}

# Makes a request by LWP's own module.
sub _by_lwp {
    my ($ua, $is_secure, $request, $proxy, @rest) = @_;
    my ($scheme, $class) = $is_secure && !$proxy ? ('https', 'LWP::Protocol::https') : ('http', 'LWP::Protocol::http');
    eval "require $class" or die $@;
    # That module asks LWP for the https module for TLS in a proxy's tunnel.
    LWP::Protocol::implementor(https => 'LWP::Protocol::https') if $is_secure && eval { local $SIG{__DIE__}; require LWP::Protocol::https };
    my $response = eval { $class->new($scheme, $ua)->request($request, $proxy, @rest) };
    my $error = $@;
    LWP::Protocol::implementor(https => __PACKAGE__);
    die $error unless $response;
    return $response;
}

# The elements that HTML::HeadParser converts into fields. Pages without them need not be parsed.
my $HEAD_ELEMENTS = qr/<(?:base|isindex|link|meta|title)/i;

sub request {
    my ($self, $request, $proxy, $arg, $size, $timeout) = @_;
    my $ua = $self->{ua};
    if ($is_plain && !defined $arg && !$proxy && !@LWP::Protocol::http::EXTRA_SOCK_OPTS) {
        my @answer = HTTP::Haul::Engine::_call_plain($ua, $request, $timeout, $KEEP_ALIVE, \@unset);
        return $answer[0] if @answer == 1;
        if (@answer) {
            my $headers = pop @answer;
            return $self->_finish($request, $proxy, $arg, $size, $headers, 0, @answer);
        }
    }
    my ($method, $url) = ($request->method, $request->uri);
    if ($method !~ /\A[A-Za-z0-9_!\#\$%&'*+\-.^`|~]+\z/) {
        return HTTP::Response->new(HTTP::Status::RC_BAD_REQUEST(), "Library does not allow method $method for '" . $url->scheme . ":' URLs");
    }
    my $text = $url->as_string;
    $text =~ s/#.*//s if index($text, '#') >= 0;
    my $is_secure = $text =~ /\Ahttps:/i;
    if (_is_lwps_own($request, $text, $ua, $is_secure)) {
        return _by_lwp($ua, $is_secure, $request, $proxy, $arg, $size, $timeout);
    }
    # For haul, as for browsers, `a` is the host in `http:///a`; for URI it is the path.
    die "No Host option provided\n" if $text !~ m{\Ahttps?://[^/]}i;
    $REQUESTS++;
    my $version = $request->protocol;
    my ($fields, $content, $logs_in) = _outgoing($request, \$text, $is_secure);
    my $engine = _engine($ua, $is_secure, $proxy, $timeout, defined $version && $version =~ m{\A(?:HTTP/)?1\.0\z} ? 1 : 0, $logs_in);
    # The server may close a kept connection while it receives a request. A request that must not be
    # sent again uses a new connection, as in LWP, unless the program has set keep_alive.
    if ((!$is_repeated{$method} || ref $content eq 'CODE') && !defined $ua->{conn_cache} && $KEEP_ALIVE ne 'all') {
        $engine->_close_idle;
    }
    my $headers = $is_plain ? HTTP::Headers->new : undef;
    my $stream = _wants_stream($ua, $arg);
    my @answer
        = $stream ? $engine->_open($method, $text, $fields, $content, $headers)
        :           $engine->_call($method, $text, $fields, $content, $headers);
    return $self->_finish($request, $proxy, $arg, $size, $headers, $stream, @answer);
}

# Makes the response from the results of the engine.
sub _finish {
    my ($self, $request, $proxy, $arg, $size, $headers, $stream, @answer) = @_;
    my ($code, $message, $protocol, $list, $body, $is_html, $status, $error) = @answer;
    my $ua = $self->{ua};
    _die($status, $error, $request->uri, $proxy) unless defined $code;
    # No handler has to see the body, so the response is complete.
    my $is_done = !$stream && !defined $error && !($is_html && $body =~ $HEAD_ELEMENTS && _parses_head($ua));
    if ($is_plain && $is_done) {
        return bless {
            (map { ($_ => undef) } @unset),
            _rc => $code, _msg => $message, _protocol => $protocol, _request => $request, _headers => $headers, _content => $body,
        }, 'HTTP::Response';
    }
    my $response = HTTP::Response->new($code, $message);
    $response->protocol($protocol);
    $response->request($request);
    $response->{_headers} = $headers if $headers;
    if ($list) {
        local $HTTP::Headers::TRANSLATE_UNDERSCORE;
        $response->push_header(@$list);
    }

    if ($stream) {
        $size ||= 4096;
        $response = $self->collect($arg, $response, sub { my $piece = $body->read($size); return \$piece });
        my $trailers = $body->trailers;
        local $HTTP::Headers::TRANSLATE_UNDERSCORE;
        $response->push_header(@$trailers) if @$trailers;
        return $response;
    }
    if ($is_done) {
        $response->content_ref(\$body) if length $body;
        return $response;
    }
    # The error follows the received part of the body.
    my $given;
    return $self->collect($arg, $response, sub {
        return \$body if !$given++ && length $body;
        die $error if defined $error && !$status;
        die +($status == 28 ? 'read timeout' : 'read failed') . ": $error\n" if defined $error;
        return \'';
    });
}

# Returns whether the user agent parses the head of HTML pages.
sub _parses_head {
    my ($ua) = @_;
    my $handlers = $ua->{handlers} or return 0;
    return $handlers->{response_header} && @{ $handlers->{response_header} };
}

1;
