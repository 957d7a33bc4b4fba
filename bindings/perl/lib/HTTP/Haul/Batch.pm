package HTTP::Haul::Batch;

# Many requests at once: the methods batch and each of HTTP::Haul. C implements the object,
# HTTP::Haul::Queue has the rules.

use strict;
use warnings;

our $VERSION = '0.1.0';

sub _croak { require Carp; Carp::croak(@_) }

# Runs all requests, and calls `take` with each response. Requests are an array or a code reference.
sub _run {
    my ($http, $requests, $options, $take) = @_;
    ref $requests eq 'ARRAY' || ref $requests eq 'CODE' or _croak("requests are an array or code reference\n");
    require HTTP::Haul::Queue;
    return HTTP::Haul::Queue->new($http, $options)->run($requests, $take);
}

sub one_by_one {
    my ($http, $requests, $code, $options) = @_;
    ref $code eq 'CODE' && (!defined $options || ref $options eq 'HASH')
        or _croak("Usage: \$http->each(REQUESTS, CODEREF, [HASHREF])\n");
    return _run($http, $requests, $options, $code);
}

sub all {
    my ($http, $requests, @rest) = @_;
    my $code = @rest && ref $rest[0] eq 'CODE' ? shift @rest : undef;
    my ($options) = @rest;
    ref $requests && @rest <= 1 && (!defined $options || ref $options eq 'HASH')
        or _croak("Usage: \$http->batch(REQUESTS, [CODEREF], [HASHREF])\n");
    my @responses;
    _run($http, $requests, $options, sub {
        my ($response, $request, $index) = @_;
        $responses[$index] = $response;
        $code->($response, $request, $index) if $code;
    });
    return wantarray ? @responses : \@responses;
}

1;
