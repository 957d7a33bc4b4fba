package HTTP::Haul;
use strict;
use warnings;

our $VERSION = '0.1.0';

require XSLoader;
XSLoader::load('HTTP::Haul', $VERSION);

sub _croak { require Carp; Carp::croak(@_) }

# Attributes that are handed to libhaul after a change. default_headers is read at each request.
my @settings = qw(
    cookie_jar dns_servers gzip http3 http_proxy https_proxy keep_alive local_address max_redirect max_size no_proxy proxy
    on_step retries SSL_options timeout timings unix_socket verify_SSL
);

# Those of them that may be arrays or hashes.
my %is_list = map { $_ => 1 } qw(dns_servers no_proxy SSL_options);

for my $name (@settings, 'default_headers') {
    my $setting = $name ne 'default_headers';
    no strict 'refs';
    *{$name} = sub {
        my $self = shift;
        if (@_) {
            my $value = $self->_checked($name, $_[0]);
            my $was = $self->{$name};
            $self->{$name} = $value;
            if ($name =~ /proxy/) {
                # `proxy` also sets the schemes that have no proxy of their own.
                my $follows = $self->{_follows_proxy};
                if ($name eq 'proxy') { $self->{$_} = $value for keys %$follows }
                else                  { delete $follows->{$name} }
            }
            # The same number or text again is no change.
            my $same = defined $was && defined $value && !ref $was && !ref $value && $was eq $value;
            $self->{_engine}->_set(ready => 0) if $setting && !$same && $self->{_engine};
        }
        elsif ($is_list{$name} && ref $self->{$name} && $self->{_engine}) {
            # The program may change what it gets, such as by `push @{ $http->no_proxy }`.
            $self->{_engine}->_set(ready => 0);
        }
        return $self->{$name};
    };
}

sub agent {
    my $self = shift;
    if (@_) {
        my ($agent) = @_;
        $agent .= $self->_agent if defined $agent && $agent =~ / \z/;
        $self->{agent} = $agent;
        $self->{_engine}->_set(ready => 0) if $self->{_engine};
    }
    return $self->{agent};
}

sub _agent {
    my $class = ref $_[0] || $_[0];
    (my $name = $class) =~ s/::/-/g;
    my $version = $class->VERSION;
    return defined $version ? "$name/$version" : $name;
}

sub new {
    my ($class, %given) = @_;
    my $self = bless {
        max_redirect => 5,
        timeout      => 60,
        keep_alive   => 1,
        verify_SSL   => ($ENV{PERL_HTTP_TINY_SSL_INSECURE_BY_DEFAULT} || '') eq '1' ? 0 : 1,
    }, $class;
    # Both spellings are accepted; a true value wins.
    $given{verify_SSL} ||= $given{verify_ssl} if exists $given{verify_ssl};
    %given = (_proxies(), %given);
    for my $name (@settings, 'default_headers') {
        $self->{$name} = $self->_checked($name, $given{$name}) if exists $given{$name};
    }
    # `proxy` stands for both schemes, but not in place of one that was given, even as undef.
    $self->{_follows_proxy} = { map { $_ => 1 } grep { !exists $given{$_} } qw(http_proxy https_proxy) };
    $self->{$_} = $self->{proxy} for keys %{ $self->{_follows_proxy} };
    $self->{timeout} = 60 unless defined $self->{timeout};
    $self->agent(exists $given{agent} ? $given{agent} : $class->_agent);
    return $self;
}

# A jar has the methods of HTTP::CookieJar or those of HTTP::Cookies.
sub _check_jar {
    my ($jar) = @_;
    my $can = sub { my $method = shift; ref $jar && eval { $jar->can($method) } };
    return if $can->('add') && $can->('cookie_header');
    return if $can->('add_cookie_header') && $can->('extract_cookies');
    my $missing = $can->('add') ? 'cookie_header' : 'add';
    _croak("Cookie jar must provide the '$missing' method\n");
}

# Returns the value to store for an attribute. Dies if it is not valid.
sub _checked {
    my ($self, $name, $value) = @_;
    if ($name eq 'cookie_jar' && $value) {
        if (ref $value eq 'HASH') {
            require HTTP::Haul::Jar;
            $value = HTTP::Haul::Jar->new(%$value);
        }
        _check_jar($value);
    }
    elsif ($name eq 'no_proxy') {
        return $value if ref $value eq 'ARRAY';
        return defined $value ? [split /\s*,\s*/, $value] : [];
    }
    elsif ($name =~ /proxy/) {
        return undef unless defined $value && length $value;
        if ($value !~ m{\A(?:https?|socks(?:4a?|5h?)?)://(?:[^/?\#\@]*\@)?[^/?\#\@]+/?\z}i) {
            my $what = $name eq 'proxy' ? 'generic proxy' : $name;
            _croak("$what URL must be in format http[s]://[auth@]<host>:<port>/\n");
        }
    }
    elsif ($name eq 'retries') {
        require HTTP::Haul::Retry;
        HTTP::Haul::Retry->of($value);
    }
    elsif ($name eq 'on_step' && defined $value && ref $value ne 'CODE') {
        _croak("on_step is a code reference\n");
    }
    return $value;
}

# Returns the attributes of proxies in the environment.
sub _proxies {
    # In a CGI program HTTP_PROXY contains the Proxy field of a client.
    my $upper = $ENV{REQUEST_METHOD} ? $ENV{CGI_HTTP_PROXY} : $ENV{HTTP_PROXY};
    my %found = (
        proxy       => $ENV{all_proxy} || $ENV{ALL_PROXY},
        http_proxy  => $ENV{http_proxy} || $upper,
        https_proxy => $ENV{https_proxy} || $ENV{HTTPS_PROXY},
    );
    delete @found{ grep { !$found{$_} } keys %found };
    return (%found, no_proxy => $ENV{no_proxy});
}

# Hands the attributes to the engine. C calls it before the first request, and after a change.
sub _prepare {
    my ($self) = @_;
    my $engine = $self->{_engine};
    if (!$engine) {
        $engine = $self->{_engine} = HTTP::Haul::Engine->_new;
        $engine->_set(redirects => 0);
        $engine->_set(without => $_) for qw(Accept Proxy-Connection);
        $engine->_set(expect_timeout => 0);
    }
    delete $self->{_peers};
    my $jar = $self->{cookie_jar};
    my $ours = ref $jar && eval { $jar->isa('HTTP::Haul::Jar') };
    $engine->_set(jar => $ours ? $jar : undef);
    $engine->_set(foreign_jar => $jar && !$ours);
    $engine->_set(in_perl => $self->{retries} || $self->{on_step});
    $engine->_set(timings => $self->{timings});
    $engine->_set(tls_facts => $self->{timings} || $self->{on_step});
    $engine->_set(user_agent => $self->{agent});
    $engine->_set(decode => $self->{gzip});
    $engine->_set($_ => $self->{$_}) for qw(keep_alive max_redirect max_size);
    $engine->_set($_ => $self->{timeout}) for qw(connect_timeout idle_timeout);
    $engine->_set(interface => $self->{local_address});
    $engine->_set(unix_socket => $self->{unix_socket});
    my $servers = $self->{dns_servers};
    $engine->_set(dns_servers => ref $servers eq 'ARRAY' ? join(',', @$servers) : $servers);
    # The numbers of haul_http. HTTP/1.1 is the default.
    my $http3 = $self->{http3};
    $engine->_set(http => !$http3 ? 11 : $http3 eq 'only' ? 31 : 30);
    my @proxies = @$self{qw(http_proxy https_proxy)};
    # Without a proxy, libhaul need not check no_proxy at each request.
    $engine->_set(no_proxy => (grep { defined } @proxies) ? join(',', @{ $self->{no_proxy} || [] }) : undef);
    $engine->_set(proxies => \@proxies);
    $self->_tls($engine);
    $engine->_set(ready => 1);
    return;
}

# The hashes in an SSL_fingerprint: one text or several, each with the hash of a public key.
sub _pins {
    my ($given) = @_;
    return undef unless defined $given;
    my $pins = '';
    for my $pin (ref $given eq 'ARRAY' ? @$given : $given) {
        my ($hex) = $pin =~ /\Asha256\$pub\$([0-9a-f:]+)\z/i;
        $hex =~ tr/://d if defined $hex;
        _croak("SSL_options: SSL_fingerprint is sha256\$pub\$ and 64 hexadecimal digits") unless defined $hex && length $hex == 64;
        $pins .= pack 'H*', $hex;
    }
    return $pins;
}

# The options of IO::Socket::SSL. An unknown one is an error: ignoring it might make a connection
# unsafe.
sub _tls {
    my ($self, $engine) = @_;
    my %given = %{ $self->{SSL_options} || {} };
    my $verify = $self->{verify_SSL};
    $verify = $given{SSL_verify_mode} ? 1 : 0 if exists $given{SSL_verify_mode};
    # Names are verified together with the chain, or not at all. Other rules cannot be obeyed, so
    # they are refused.
    my $names = $given{SSL_verifycn_scheme};
    if ($verify && defined $names && (ref $names || $names eq 'none')) {
        _croak("SSL_options: this SSL_verifycn_scheme is not supported where certificates are verified");
    }
    my $version = $given{SSL_version};
    if (defined $version && $version !~ /\ATLSv1_[23]\z/) {
        _croak("SSL_options: SSL_version is TLSv1_2 or TLSv1_3");
    }
    $engine->_set(tls_version => defined $version ? 10 + substr $version, -1 : 0);
    $engine->_set(pins => _pins($given{SSL_fingerprint}));
    $engine->_set(ca_pem => $given{SSL_ca_pem});
    $engine->_set(certificate_pem => $given{SSL_cert_pem});
    $engine->_set(verify  => $verify);
    # libhaul trusts all the authorities that it gets. The environment stands in only if the program
    # gives none.
    my ($file, $path) = @given{qw(SSL_ca_file SSL_ca_path)};
    ($file, $path) = @ENV{qw(SSL_CERT_FILE SSL_CERT_DIR)} unless grep { defined } $file, $path, $given{SSL_ca_pem};
    $engine->_set(ca_file => $file);
    $engine->_set(ca_path => $path);
    $engine->_set(certificate => defined $given{SSL_cert_file} ? [@given{qw(SSL_cert_file SSL_key_file)}] : undef);
    delete @given{ qw(SSL_verify_mode SSL_verifycn_scheme SSL_ca_file SSL_ca_path SSL_cert_file SSL_key_file) };
    delete @given{ qw(SSL_version SSL_fingerprint SSL_ca_pem SSL_cert_pem) };
    delete $given{$_} for grep { !defined $given{$_} } keys %given;
    if (my ($unknown) = sort keys %given) {
        _croak("SSL_options: '$unknown' is not supported");
    }
    return;
}

# ---- Methods that C calls ----

sub _text { return "$_[0]" }

# The result of a trailer callback, as a list of names and values in bytes.
sub _trailers {
    my ($callback) = @_;
    my $fields = $callback->();
    ref $fields eq 'HASH' or die "trailer_callback must return a hash reference\n";
    my @list;
    for my $name (sort keys %$fields) {
        my $values = $fields->{$name};
        push @list, map { ("$name", "$_") } grep { defined } ref $values eq 'ARRAY' ? @$values : $values;
    }
    utf8::downgrade($_, 1) or die "Wide character in a trailer\n" for @list;
    return \@list;
}

# Most programs need none of these functions, so their file is loaded by the first call, and replaces them all.
for my $name (qw(_follow _next_hop _join _request_in_perl _attempt)) {
    no strict 'refs';
    *{$name} = sub { require HTTP::Haul::RequestInPerl; goto &{$name} };
}

# The Location of a response that is a redirect to follow.
sub _redirect_location {
    my ($self, $response, $method, $count) = @_;
    return if $count >= ($self->{max_redirect} || 0);
    my $status = $response->{status};
    return unless $status == 303 || $status =~ /\A30[1278]\z/ && ($method eq 'GET' || $method eq 'HEAD');
    my $location = $response->{headers}{location};
    $location = $location->[0] if ref $location;
    return unless defined $location && length $location;
    # Bytes beyond ASCII keep their value; only in a host name they are UTF-8.
    my ($host, $rest) = $location =~ m{\A((?:[^:/?\#]*:)?//[^/?\#]*|)(.*)\z}s;
    utf8::decode($host);
    $rest =~ s/([^\x00-\x7f])/sprintf '%%%02X', ord $1/ge;
    return $host . $rest;
}

# The default fields and those of the request, in one hash.
sub _fields {
    my ($self, $given) = @_;
    my %fields = %{ $given || {} };
    return \%fields unless $self->{default_headers};
    my %has = map { lc($_) => 1 } keys %fields;
    my $default = $self->{default_headers};
    $has{ lc $_ } or $fields{$_} = $default->{$_} for keys %$default;
    return \%fields;
}

sub _is_tainted { local ($@, $SIG{__DIE__}); return !eval { eval('#' . substr($_[0], 0, 0)); 1 } }

sub _authority {
    my ($scheme, $authority) = $_[0] =~ m{\A([^:/?#]+)://([^/?#]*)} or return;
    $authority =~ s/\A.*\@//s;
    my $port = $authority =~ s/:([0-9]*)\z// && length $1 ? $1 : lc $scheme eq 'https' ? 443 : 80;
    return (lc $scheme, lc $authority, $port);
}

sub _origin { my ($scheme, $host, $port) = _authority($_[0]); return defined $scheme ? "$scheme $host $port" : '' }
sub _host { my (undef, $host) = _authority($_[0]); return $host }

# ---- Other methods of HTTP::Tiny ----

sub mirror {
    my ($self, $url, $file, $args) = @_;
    @_ == 3 || @_ == 4 && ref $args eq 'HASH' or _croak("Usage: \$http->mirror(URL, FILE, [HASHREF])\n");
    require HTTP::Haul::Mirror;
    return HTTP::Haul::Mirror::mirror($self, $url, $file, $args);
}

sub can_ssl {
    my ($self) = @_;
    my ($ok, $reason) = (1, '');
    # TLS is built in; only the file of CA certificates may be missing.
    if (ref $self) {
        my $file = ($self->{SSL_options} || {})->{SSL_ca_file};
        ($ok, $reason) = (0, "SSL_ca_file '$file' not found or not readable\n") if defined $file && !-r $file;
    }
    return wantarray ? ($ok, $reason) : $ok;
}

sub connected {
    my ($self) = @_;
    my $url = $self->{_engine} ? $self->{_engine}->_last_url : undef;
    return unless defined $url;
    my (undef, $host, $port) = _authority("$url");
    return wantarray ? ($host, $port) : "$host:$port";
}

# ---- Methods that HTTP::Tiny does not have ----

sub post_multipart {
    my ($self, $url, $parts, $args) = @_;
    @_ == 3 || @_ == 4 && ref $args eq 'HASH' or _croak("Usage: \$http->post_multipart(URL, DATAREF, [HASHREF])\n");
    require HTTP::Haul::Multipart;
    my ($type, $body) = HTTP::Haul::Multipart::encode($parts);
    my %fields = %{ $args ? $args->{headers} || {} : {} };
    delete @fields{ grep { lc $_ eq 'content-type' } keys %fields };
    return $self->request('POST', $url, { %{ $args || {} }, headers => { %fields, 'Content-Type' => $type }, content => $body });
}

for my $name (qw(get post put patch delete)) {
    my $method = uc $name;
    no strict 'refs';
    *{"${name}_json"} = $name eq 'get' || $name eq 'delete'
        ? sub {
            my ($self, $url, $args) = @_;
            @_ == 2 || @_ == 3 && ref $args eq 'HASH' or _croak("Usage: \$http->${name}_json(URL, [HASHREF])\n");
            return $self->request_json($method, $url, undef, $args);
        }
        : sub {
            my ($self, $url, $data, $args) = @_;
            @_ == 3 || @_ == 4 && ref $args eq 'HASH' or _croak("Usage: \$http->${name}_json(URL, DATA, [HASHREF])\n");
            return $self->request_json($method, $url, \$data, $args);
        };
}

sub request_json {
    my ($self, $method, $url, $data, $args) = @_;
    require HTTP::Haul::JSON;
    return HTTP::Haul::JSON::request($self, $method, $url, $data, $args);
}

sub batch {
    my ($self, $requests, @rest) = @_;
    require HTTP::Haul::Batch;
    return HTTP::Haul::Batch::all($self, $requests, @rest);
}

sub each {
    my ($self, $requests, $code, @rest) = @_;
    require HTTP::Haul::Batch;
    return HTTP::Haul::Batch::one_by_one($self, $requests, $code, @rest);
}

sub close_idle {
    my ($self) = @_;
    $self->{_engine}->_close_idle if $self->{_engine};
    return;
}

sub stats {
    my ($self) = @_;
    my %stats;
    @stats{qw(connections requests bytes)} = $self->{_engine} ? $self->{_engine}->_stats : (0, 0, 0);
    return \%stats;
}

1;
