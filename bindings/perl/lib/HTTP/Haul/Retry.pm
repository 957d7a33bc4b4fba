package HTTP::Haul::Retry;

# The rules after which a request is sent again, and the retries of one request.

use strict;
use warnings;

use Time::HiRes ();

our $VERSION = '0.1.0';

# A Retry-After is cut to this many seconds before it is compared with max_retry_after.
use constant LONGEST => 1e9;

my %default = (
    total               => 3,
    connect             => undef,
    read                => undef,
    status              => undef,
    backoff             => 0.5,
    max_backoff         => 120,
    jitter              => 0.5,
    respect_retry_after => 1,
    max_retry_after     => 3600,
    # The methods that a server may carry out twice (RFC 9110 section 9.2.2).
    allowed_methods  => [qw(GET HEAD OPTIONS TRACE PUT DELETE)],
    status_forcelist => [408, 429, 500, 502, 503, 504],
);

sub _croak { require Carp; Carp::croak(@_) }

sub new {
    my ($class, %given) = @_;
    for my $name (sort keys %given) {
        _croak("no option '$name' for retries\n") unless exists $default{$name};
    }
    my %rules = (%default, %given);
    for my $name (qw(total connect read status backoff max_backoff jitter max_retry_after)) {
        my $value = $rules{$name};
        next if !defined $value && $name =~ /\A(?:connect|read|status)\z/;
        defined $value && !ref $value && $value =~ /\A[0-9]+(?:\.[0-9]*)?(?:e[-+]?[0-9]+)?\z|\A\.[0-9]+\z/i
            or _croak("'$name' of retries must be a number of 0 or more\n");
    }
    $rules{jitter} <= 1 or _croak("'jitter' of retries must be at most 1\n");
    for my $name (qw(allowed_methods status_forcelist)) {
        next if !defined $rules{$name} && $name eq 'allowed_methods';
        ref $rules{$name} eq 'ARRAY' or _croak("'$name' of retries must be an array reference\n");
        $rules{$name} = { map { uc $_ => 1 } @{ $rules{$name} } };
    }
    return bless \%rules, $class;
}

# Returns the rules for the value of an option `retries`; undef for none.
sub of {
    my ($class, $given) = @_;
    return undef unless $given;
    return $given if ref $given && ref $given ne 'HASH' && eval { $given->isa(__PACKAGE__) };
    return $class->new(%$given) if ref $given eq 'HASH';
    return $class->new(total => $given) if !ref $given && $given =~ /\A[0-9]+\z/;
    _croak("retries must be a number, a hash reference or an HTTP::Haul::Retry\n");
}

# Begins the retries of a request. `holds` contains the origins to be left alone, with the times
# until then; the requests of an object share it.
sub state {
    my ($rules, $holds) = @_;
    return bless { rules => $rules, holds => $holds, connect => 0, read => 0, status => 0 }, 'HTTP::Haul::Retry::State';
}

package HTTP::Haul::Retry::State;

sub now { return Time::HiRes::clock_gettime(Time::HiRes::CLOCK_MONOTONIC()) }

# Sleeps although signals arrive. A signal handler may die.
sub pause {
    my ($seconds) = @_;
    my $until = now() + $seconds;
    while ((my $left = $until - now()) > 0) {
        select undef, undef, undef, $left;
    }
    return;
}

# Returns the seconds for which the host of a URL has to be left alone.
sub held {
    my ($self, $url) = @_;
    my $holds = $self->{holds};
    return 0 unless %$holds;
    my $origin = HTTP::Haul::_origin("$url");
    my $left = ($holds->{$origin} || 0) - now();
    return $left if $left > 0;
    delete $holds->{$origin};
    return 0;
}

# Returns the seconds to wait before the request is sent again; undef if the response stands.
sub after {
    my ($self, $response, $method) = @_;
    my $rules = $self->{rules};
    if ($response->{status} == 599 && !$response->{protocol}) {
        my $error = $response->{error};
        return undef unless $error && $error->{transient} && $response->{content} !~ /NXDOMAIN/;
        return $self->_next('connect', 0) if $error->{connect};
        return $self->_may_repeat($method) ? $self->_next('read', 0) : undef;
    }
    return undef unless $rules->{status_forcelist}{ $response->{status} } && $self->_may_repeat($method);
    my $asked = $rules->{respect_retry_after} ? _retry_after($response->{headers}{'retry-after'}) : 0;
    return undef if $asked > $rules->{max_retry_after};
    if ($asked > 0) {
        my $origin = HTTP::Haul::_origin("$response->{url}");
        my $until = now() + $asked;
        $self->{holds}{$origin} = $until if $until > ($self->{holds}{$origin} || 0);
    }
    return $self->_next('status', $asked);
}

sub _may_repeat {
    my ($self, $method) = @_;
    my $methods = $self->{rules}{allowed_methods};
    return !$methods || $methods->{ uc $method };
}

sub _next {
    my ($self, $cause, $asked) = @_;
    my $rules = $self->{rules};
    my $number = $self->{connect} + $self->{read} + $self->{status};
    return undef if $number >= $rules->{total};
    return undef if defined $rules->{$cause} && $self->{$cause} >= $rules->{$cause};
    $self->{$cause}++;
    my $wait = $rules->{backoff} * 2**($number < 64 ? $number : 64);
    $wait = $rules->{max_backoff} if $wait > $rules->{max_backoff};
    $wait *= 1 - rand $rules->{jitter} if $rules->{jitter} > 0;
    return $wait > $asked ? $wait : $asked;
}

# Returns the seconds of a Retry-After: a number or a date (RFC 9110 section 10.2.3). 0 for a field
# that is neither.
sub _retry_after {
    my ($value) = @_;
    $value = $value->[0] if ref $value;
    return 0 unless defined $value;
    if ($value =~ /\A\s*([0-9]+)\s*\z/) {
        return $1 < HTTP::Haul::Retry::LONGEST ? $1 : HTTP::Haul::Retry::LONGEST;
    }
    require HTTP::Haul::Mirror;
    my $time = HTTP::Haul::Mirror::_http_time($value);
    my $left = defined $time ? $time - Time::HiRes::time() : 0;
    return $left > 0 ? $left : 0;
}

# Sends a request with its retries. It is not sent again if code has read its content or taken a
# part of its reply: neither can be undone.
sub request {
    my ($self, $http, $method, $url, $args) = @_;
    my %args = %$args;
    my $used;
    for my $name (qw(content data_callback)) {
        my $code = $args{$name};
        $args{$name} = sub { $used = 1; goto &$code } if ref $code eq 'CODE';
    }
    while (1) {
        my $held = $self->held($url);
        pause($held) if $held > 0;
        my $response = $http->_attempt($method, $url, \%args);
        my $wait = $used ? undef : $self->after($response, $method);
        return $response unless defined $wait;
        if ($args->{_steps}) {
            $args->{_steps}->report(retry => { status => $response->{status}, url => $url, wait => $wait });
        }
        pause($wait);
    }
}

1;
