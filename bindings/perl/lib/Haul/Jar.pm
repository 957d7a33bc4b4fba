package Haul::Jar;

use strict;
use warnings;

use Haul ();

our $VERSION = '0.1.0';

sub _croak { require Carp; Carp::croak(@_) }

sub new {
    my ($class, %given) = @_;
    my ($file, $autosave, $format) = delete @given{qw(file autosave format)};
    delete $given{ignore_discard};
    _croak("Haul::Jar->new: no option '" . (sort keys %given)[0] . "'") if %given;
    my $self = _new($class);
    @$self{qw(file autosave format pid)} = ($file, $autosave, $format, $$);
    $self->load if defined $file;
    return $self;
}

# A jar of a thread that ends, or of a child process, must not save what is its parent's.
sub CLONE_SKIP { return 0 }

sub CLONE { $Haul::Jar::thread++ }

our $thread = 0;

sub DESTROY {
    my ($self) = @_;
    return unless $self->{autosave} && defined $self->{file} && $self->{pid} == $$ && !$thread;
    local ($@, $!);
    eval { $self->save; 1 } or warn "Haul::Jar: $@";
    return;
}

sub _format_of {
    my ($path) = @_;
    open my $in, '<:raw', $path or return;
    my $first = <$in>;
    return defined $first && $first =~ /\A#LWP-Cookies-/ ? 'lwp' : 'netscape';
}

# Adds what a file holds, of whichever of the two formats it is. One that is not there is empty.
sub load {
    my ($self, $path) = @_;
    $path = $self->{file} unless defined $path;
    _croak('Haul::Jar: no file to load') unless defined $path;
    my $format = _format_of($path);
    if (defined $format && $format eq 'lwp') {
        $self->{format} = 'lwp' if !defined $self->{format} && defined $self->{file} && $self->{file} eq $path;
        open my $in, '<:raw', $path or _croak("$path: $!");
        local $/;
        return $self->_load_set_cookie3(scalar <$in>);
    }
    # libhaul writes what has changed since its file was read: that may be said of one file only. Another's cookies are put
    # in as new ones.
    $self->{loaded} = $path unless defined $self->{loaded};
    if ($self->{loaded} eq $path) {
        $self->_load($path);
    }
    else {
        my $other = _new(ref $self);
        $other->_load($path);
        $self->put($_) for $other->cookies;
    }
    return $self;
}

sub save {
    my ($self, $path, %given) = @_;
    $path = $self->{file} unless defined $path;
    _croak('Haul::Jar: no file to save to') unless defined $path;
    my $format = $given{format} || $self->{format} || 'netscape';
    _croak("Haul::Jar: format is 'netscape' or 'lwp'") unless $format =~ /\A(?:netscape|lwp)\z/;
    _croak("Insecure dependency in open while running with -T switch\n") if ${^TAINT} && _tainted($path);
    if ($format eq 'netscape') {
        $self->{loaded} = $path unless defined $self->{loaded};
        my $jar = $self;
        if ($self->{loaded} ne $path) {
            $jar = _new(ref $self);
            $jar->put($_) for $self->cookies;
        }
        $jar->_save($path);
        return $self;
    }
    require Fcntl;
    my $partial = "$path.$$.part";
    unlink $partial;
    sysopen my $out, $partial, Fcntl::O_CREAT() | Fcntl::O_EXCL() | Fcntl::O_WRONLY(), 0600 or _croak("$partial: $!");
    binmode $out;
    if (!(print {$out} "#LWP-Cookies-1.0\n", $self->as_string) || !close $out || !rename $partial, $path) {
        my $why = $!;
        unlink $partial;
        _croak("$path: $why");
    }
    return $self;
}

sub _tainted { return !eval { eval('#' . substr($_[0], 0, 0)); 1 } }

sub revert {
    my ($self) = @_;
    $self->clear->load;
    return $self;
}

# All, those of a domain, of a path in it, or one of a name in that.
sub clear {
    my ($self, $domain, $path, $name) = @_;
    if (!defined $domain) {
        $self->_clear;
        return $self;
    }
    (my $bare = lc $domain) =~ s/\A\.//;
    for my $cookie ($self->cookies) {
        next unless $cookie->{domain} eq $bare;
        next if defined $path && $cookie->{path} ne $path;
        next if defined $name && $cookie->{name} ne $name;
        $self->remove(@$cookie{qw(domain path name)});
    }
    return $self;
}

sub cookies { return @{ $_[0]->_list } }

# HTTP::Cookies' name of clear_session.
sub clear_temporary_cookies {
    my ($self) = @_;
    $self->clear_session;
    return $self;
}

# ---- HTTP::Cookies' methods, so that LWP::UserAgent can have this jar ----

sub add_cookie_header {
    my ($self, $request) = @_;
    my $url = $request->uri or return;
    return unless $url =~ m{\Ahttps?://}i;
    my $cookies = $self->cookie_header("$url");
    $request->header(Cookie => $cookies) if length $cookies;
    return $request;
}

sub extract_cookies {
    my ($self, $response) = @_;
    my $request = $response->request or return;
    my $url = $request->uri;
    return $response unless $url =~ m{\Ahttps?://}i;
    $self->add("$url", $_) for $response->headers->header('Set-Cookie');
    return $response;
}

sub set_cookie {
    my ($self, undef, $name, $value, $path, $domain, undef, undef, $secure, $max_age) = @_;
    return $self if defined $max_age && $max_age <= 0 && $self->clear($domain, $path, $name);
    (my $bare = lc $domain) =~ s/\A\.//;
    $self->put({
        name => $name, value => $value, path => $path, domain => _without_local($bare),
        host_only => $domain !~ /\A\./, secure => $secure, expires => defined $max_age ? time + $max_age : undef,
    });
    return $self;
}

# ---- Set-Cookie3, the text of HTTP::Cookies' files ----

# There a host without a dot has ".local" behind it.
sub _without_local { my ($domain) = @_; return $domain =~ /\A([^.]+)\.local\z/ ? $1 : $domain }

sub _quote {
    my ($value) = @_;
    return $value if $value =~ /\A[^\s"()<>@,;:\\\/\[\]?={}\x00-\x1f\x7f-\xff]+\z/;
    $value =~ s/(["\\])/\\$1/g;
    return qq("$value");
}

sub _time_text {
    my ($second, $minute, $hour, $day, $month, $year) = gmtime $_[0];
    return sprintf '%04d-%02d-%02d %02d:%02d:%02dZ', $year + 1900, $month + 1, $day, $hour, $minute, $second;
}

sub _text_time {
    my ($year, $month, $day, $hour, $minute, $second)
        = $_[0] =~ /\A(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d):(\d\d))?(?:\.\d+)?Z?\z/
        or return;
    require Time::Local;
    return eval { Time::Local::timegm($second || 0, $minute || 0, $hour || 0, $day, $month - 1, $year) };
}

# A line a cookie. With a true argument, those that end with the session are left out.
sub as_string {
    my ($self, $skip_session) = @_;
    my $text = '';
    for my $cookie ($self->cookies) {
        my ($name, $domain) = @$cookie{qw(name domain)};
        next if $skip_session && !defined $cookie->{expires};
        $domain = "$domain.local" unless $domain =~ /[.:]/;
        $domain = ".$domain" unless $cookie->{host_only};
        my @pairs = (_quote($name) . '=' . _quote_always($cookie->{value}), 'path=' . _quote_always($cookie->{path}),
            'domain=' . _quote($domain));
        push @pairs, 'path_spec';
        push @pairs, 'secure' if $cookie->{secure};
        push @pairs, 'expires="' . _time_text($cookie->{expires}) . '"' if defined $cookie->{expires};
        push @pairs, 'discard' if !defined $cookie->{expires};
        push @pairs, 'HttpOnly' if $cookie->{http_only};
        $text .= 'Set-Cookie3: ' . join('; ', @pairs, 'version=0') . "\n";
    }
    return $text;
}

sub _quote_always {
    my ($value) = @_;
    $value = '' unless defined $value;
    return $value if $value =~ /\A[A-Za-z0-9._~!#\$%&'*+^`|-]+\z/;
    $value =~ s/(["\\])/\\$1/g;
    return qq("$value");
}

# The pairs of a line; what is quoted may hold anything, a backslash before a quote or a backslash.
sub _pairs {
    my ($line) = @_;
    my @pairs;
    while ($line =~ /\G\s*([^=;\s]+)\s*(=\s*(?:"((?:[^"\\]|\\.)*)"|([^;]*)))?\s*(?:;|\z)/gc) {
        my ($name, $has, $quoted, $plain) = ($1, $2, $3, $4);
        my $value = defined $quoted ? $quoted =~ s/\\(.)/$1/gr : defined $plain ? $plain : undef;
        $value =~ s/\s+\z// if defined $value && !defined $quoted;
        push @pairs, [$name, $has ? defined $value ? $value : '' : undef];
    }
    return @pairs;
}

sub _load_set_cookie3 {
    my ($self, $text) = @_;
    for my $line (split /\n/, $text) {
        $line =~ s/\ASet-Cookie3:\s*// or next;
        my ($first, @rest) = _pairs($line);
        next unless $first && defined $first->[1];
        my %is = map { lc($_->[0]) => defined $_->[1] ? $_->[1] : 1 } @rest;
        next unless defined $is{domain} && defined $is{path};
        my $expires = defined $is{expires} ? _text_time($is{expires}) : undef;
        next if defined $expires && $expires <= time;
        my $host_only = $is{domain} !~ /\A\./;
        (my $domain = lc $is{domain}) =~ s/\A\.//;
        my $local = _without_local($domain);
        # A cookie that the rules refuse is passed over, as a line that is none.
        eval {
            $self->put({
                name => $first->[0], value => $first->[1], path => $is{path}, domain => $local,
                host_only => $host_only || $local ne $domain, secure => exists $is{secure}, http_only => exists $is{httponly},
                expires => $expires,
            });
        };
    }
    return $self;
}

1;
