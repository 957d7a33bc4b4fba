package HTTP::Haul::Batch;

# Many requests at once: the methods batch and each of HTTP::Haul. C implements the object; the
# rules are here.

use strict;
use warnings;

our $VERSION = '0.1.0';

sub _croak { require Carp; Carp::croak(@_) }

# Converts a request of the caller (a URL, an array or a hash) into (method, URL, options).
sub _request {
    my ($request) = @_;
    if (ref $request eq 'ARRAY') {
        my ($method, $url, $args) = @$request;
        _croak("a request of a batch is [METHOD, URL, HASHREF]\n") unless defined $url;
        return ($method, $url, $args || {});
    }
    if (ref $request eq 'HASH') {
        my %args = %$request;
        my ($method, $url) = delete @args{qw(method url)};
        _croak("a request of a batch needs a url\n") unless defined $url;
        return (defined $method ? $method : 'GET', $url, \%args);
    }
    _croak("a request of a batch must not be undef\n") unless defined $request;
    return ('GET', $request, {});
}

# Starts a request. A request that cannot be sent gets its 599 at once.
sub _start {
    my ($http, $batch, $index, $request) = @_;
    my ($method, $url, $args) = _request($request);
    for my $not (qw(data_callback trailer_callback peer)) {
        _croak("'$not' cannot be used in a batch\n") if defined $args->{$not};
    }
    _croak("content by callback cannot be used in a batch\n") if ref $args->{content} eq 'CODE';
    my $fields = $http->_fields($args->{headers});
    my $jar = $http->{cookie_jar};
    my $foreign = $jar && !$jar->isa('HTTP::Haul::Jar') ? $jar : undef;
    my %state = (method => $method, url => "$url", args => $args, foreign => $foreign, request => $request);
    my $fault = eval {
        die "The 'Host' header must not be provided as header option\n" if grep { lc $_ eq 'host' } keys %$fields;
        die "Insecure dependency in connect while running with -T switch\n" if ${^TAINT} && HTTP::Haul::_is_tainted($url);
        if ($foreign) {
            require HTTP::Haul::ForeignJar;
            HTTP::Haul::ForeignJar::put($foreign, $method, $url, $fields);
        }
        my $content = $args->{content};
        my %has = map { lc($_) => 1 } keys %$fields;
        $fields->{'Content-Type'} = 'application/octet-stream'
            if defined $content && length $content && !$has{'content-type'};
        $content = '' if !defined $content && ($method eq 'POST' || $method eq 'PUT');
        my @list;
        for my $name (sort keys %$fields) {
            next if lc $name eq 'content-length' || lc $name eq 'transfer-encoding';
            my $value = $fields->{$name};
            push @list, map { ($name => $_) } grep { defined } ref $value eq 'ARRAY' ? @$value : $value;
        }
        # The cookies of a foreign jar are set for each redirect separately, in Perl.
        my $follow = !$foreign && ($method eq 'GET' || $method eq 'HEAD') ? $http->{max_redirect} : 0;
        $batch->_add($index, $method, $url, \@list, $content, $follow || 0);
        1;
    } ? undef : "$@";
    $state{answer} = HTTP::Haul::_internal_error($url, $fault) if defined $fault;
    return \%state;
}

# Stores cookies in a foreign jar, and follows redirects that libhaul has not followed.
sub _finish {
    my ($http, $state, $response) = @_;
    $response->{url} = $state->{url} unless length $response->{url} && $response->{redirects};
    return $response if $response->{status} == 599;
    if ($state->{foreign}) {
        HTTP::Haul::ForeignJar::take($state->{foreign}, $state->{method}, $state->{url}, $response);
    }
    if (!$response->{redirects} && $response->{status} =~ /\A30[12378]\z/) {
        $response = $http->_follow($response, $state->{method}, $state->{url}, $state->{args});
    }
    return $response;
}

# Runs all requests, and calls `take` with each response. Requests are an array or a code reference.
sub _run {
    my ($http, $requests, $options, $take) = @_;
    my %limits  = (rate => 0, rate_host => 0, limit_rate => 0, stall_time => 0);
    my %default = (parallel => 64, per_host => undef, order => 'completion', memory => 64 << 20, %limits);
    my %options = (%default, %{ $options || {} });
    for my $name (sort keys %options) {
        _croak("no option '$name' for a batch\n") unless exists $default{$name};
    }
    $_ >= 0 or _croak("rate, rate_host, limit_rate and stall_time must not be negative\n") for @options{keys %limits};
    _croak("order is 'input' or 'completion'\n") unless $options{order} =~ /\A(?:input|completion)\z/;
    $_ > 0 or _croak("parallel, per_host and memory must be above 0\n")
        for grep { defined } @options{qw(parallel per_host memory)};
    my $at = 0;
    my $source
        = ref $requests eq 'ARRAY' ? sub { $at < @$requests ? $requests->[$at++] : () }
        : ref $requests eq 'CODE'  ? $requests
        :                            _croak("requests are an array or code reference\n");
    $http->_prepare unless $http->{_engine};
    $http->_prepare;
    my $in_order = $options{order} eq 'input';
    my $batch = HTTP::Haul::Batch->_new($http->{_engine}, $options{parallel}, $options{per_host} // 0, $in_order, $options{memory});
    $batch->_limit(@options{qw(rate rate_host limit_rate stall_time)});
    # The number of requests that libhaul has at once. More would only use memory.
    my $ahead = 2 * $options{parallel};
    # Requests that could not be started. Their 599 is handed over at once, or in input order.
    my (%under_way, @answered, $dry);
    my ($next, $count) = (0, 0);
    while (1) {
        while (!$dry && keys(%under_way) < $ahead) {
            my ($request) = $source->();
            if (!defined $request) { $dry = 1; last }
            $under_way{$next} = _start($http, $batch, $next, $request);
            push @answered, $next if $under_way{$next}{answer};
            $next++;
        }
        last unless %under_way;
        my ($index, $response);
        if (@answered && (!$in_order || $answered[0] == $count)) {
            $index = shift @answered;
            $response = $under_way{$index}{answer};
        }
        else {
            # Signal handlers run between the waits.
            ($index, $response) = $batch->_next(100) or next;
        }
        my $state = delete $under_way{$index};
        $count++;
        $take->(_finish($http, $state, $response), $state->{request}, $index);
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
