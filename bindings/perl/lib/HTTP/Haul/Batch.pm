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
    require HTTP::Haul::Queue;
    my $at = 0;
    my $source
        = ref $requests eq 'ARRAY' ? sub { $at < @$requests ? $requests->[$at++] : () }
        : ref $requests eq 'CODE'  ? $requests
        :                            _croak("requests are an array or code reference\n");
    my $queue = HTTP::Haul::Queue->new($http, $options);
    my ($dry, $count) = (0, 0);
    while (1) {
        while (!$dry && $queue->has_room) {
            my ($request) = $source->();
            if (!defined $request) { $dry = 1; last }
            $queue->add($request);
        }
        last unless $queue->pending;
        # Signal handlers run between the waits.
        my ($index, $response, $request) = $queue->take(100) or next;
        $count++;
        $take->($response, $request, $index);
    }
    return $count;
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
