package HTTP::Haul::Jar;

use strict;
use warnings;

use HTTP::Haul ();

our $VERSION = '0.1.0';

sub _croak { require Carp; Carp::croak(@_) }

sub new {
    my ($class, %given) = @_;
    my ($file, $autosave, $format) = delete @given{qw(file autosave format)};
    delete $given{ignore_discard};
    _croak("HTTP::Haul::Jar->new: no option '" . (sort keys %given)[0] . "'") if %given;
    my $self = _new($class);
    @$self{qw(file autosave format pid)} = ($file, $autosave, $format, $$);
    $self->load if defined $file;
    return $self;
}

# autosave writes the file in the process and thread that created the jar only.
my $thread = 0;

sub CLONE { $thread++; return }

sub DESTROY {
    my ($self) = @_;
    return unless $self->{autosave} && defined $self->{file} && $self->{pid} == $$ && !$thread;
    local ($@, $!, $SIG{__DIE__});
    eval { $self->save; 1 } or warn "HTTP::Haul::Jar: $@";
    return;
}

sub _format_of {
    my ($path) = @_;
    open my $in, '<:raw', $path or return;
    my $first = <$in>;
    return defined $first && $first =~ /\A#LWP-Cookies-/ ? 'lwp' : 'netscape';
}

# Adds the cookies of a file in either format. A missing file is empty.
sub load {
    my ($self, $path) = @_;
    $path = $self->{file} unless defined $path;
    _croak('HTTP::Haul::Jar: no file to load') unless defined $path;
    my $format = _format_of($path);
    if (!defined $self->{loaded}) {
        $self->{loaded} = $path;
        $self->{format} = $format unless defined $self->{format};
    }
    # libhaul writes only changes since it has read its file, so there is one such file. Cookies of
    # other files are added as new ones.
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
    _croak('HTTP::Haul::Jar: no file to save to') unless defined $path;
    my $format = $given{format} || $self->{format} || 'netscape';
    _croak("HTTP::Haul::Jar: format is 'netscape' or 'lwp'") unless $format =~ /\A(?:netscape|lwp)\z/;
    _croak("Insecure dependency in open while running with -T switch\n") if ${^TAINT} && HTTP::Haul::_is_tainted($path);
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
    my $text = $self->as_string;
    $text = "#LWP-Cookies-1.0\n$text" unless $text =~ /\A#LWP-Cookies-/;
    if (!(print {$out} $text) || !close $out || !rename $partial, $path) {
        my $why = $!;
        unlink $partial;
        _croak("$path: $why");
    }
    return $self;
}

sub revert {
    my ($self) = @_;
    $self->clear->load;
    return $self;
}

# Removes all cookies, or those of a domain, a path in it, and a name.
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

# The name of clear_session in HTTP::Cookies.
sub clear_temporary_cookies {
    my ($self) = @_;
    $self->clear_session;
    return $self;
}

# ---- Methods of HTTP::Cookies, for LWP::UserAgent ----

# Returns the name in a pair of a Cookie field.
sub _name_of { return $_[0] =~ /\A\s*([^=]*?)\s*=/ ? $1 : '' }

sub add_cookie_header {
    my ($self, $request) = @_;
    my $url = $request->uri or return;
    return unless $url =~ m{\Ahttps?://}i;
    my $cookies = $self->cookie_header("$url");
    return $request unless length $cookies;
    # Those of the program come first. LWP before 6.47 calls this for a request again, which then has
    # the cookies of the jar already, perhaps with old values.
    my %is_in_jar = map { _name_of($_) => 1 } split /; /, $cookies;
    my @own = grep { length && !$is_in_jar{ _name_of($_) } } map { split /\s*;\s*/ } $request->header('Cookie');
    $request->header(Cookie => join '; ', @own, $cookies);
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

# Like HTTP::Cookies it ignores a cookie that is not valid, here also one that cannot be sent.
sub set_cookie {
    my ($self, undef, $name, $value, $path, $domain, undef, undef, $secure, $max_age) = @_;
    return $self if grep { !defined } $name, $path, $domain;
    return $self if $path !~ m{\A/} || $name =~ /\A\$/;
    return $self if defined $max_age && $max_age <= 0 && $self->clear($domain, $path, $name);
    (my $bare = lc $domain) =~ s/\A\.//;
    my %cookie = (
        name => $name, value => $value, path => $path, domain => $bare =~ /\A([^.]+)\.local\z/ ? $1 : $bare,
        host_only => $domain !~ /\A\./, secure => $secure, expires => defined $max_age ? time + $max_age : undef,
    );
    local ($@, $SIG{__DIE__});
    eval { $self->put(\%cookie) };
    return $self;
}

# All cookies in the format of HTTP::Cookies, one in a line.
sub as_string {
    my ($self) = @_;
    (my $text = $self->_to_text(1)) =~ s/\A#LWP-Cookies-[^\n]*\n//;
    return $text;
}

1;
