package HTTP::Haul::Queue;

# Requests that are in progress at the same time, with their redirects and retries. HTTP::Haul's
# each and batch wait for it; HTTP::Haul::Promise is called by an event loop.

use strict;
use warnings;

use HTTP::Haul;
use HTTP::Haul::Batch;
use HTTP::Haul::Retry;

our $VERSION = '0.1.0';

# The maximum number of requests that wait for their next attempt, each with its content.
use constant MOST_WAITING => 10_000;

sub _croak { require Carp; Carp::croak(@_) }

my %limits  = (rate => 0, rate_host => 0, limit_rate => 0, stall_time => 0);
my %default = (parallel => 64, per_host => undef, order => 'completion', memory => 64 << 20, retries => undef, %limits);

# `@given` is hashes of options, the last of which counts. An undefined option is as if it was not
# there.
sub new {
    my ($class, $http, @given) = @_;
    my %options = %default;
    for my $given (grep { defined } @given) {
        for my $name (sort keys %$given) {
            _croak("no option '$name' for a batch\n") unless exists $default{$name};
            $options{$name} = $given->{$name} if defined $given->{$name};
        }
    }
    $_ >= 0 or _croak("rate, rate_host, limit_rate and stall_time must not be negative\n") for @options{keys %limits};
    _croak("order is 'input' or 'completion'\n") unless $options{order} =~ /\A(?:input|completion)\z/;
    int $_ > 0 or _croak("parallel, per_host and memory must be 1 or more\n")
        for grep { defined } @options{qw(parallel per_host memory)};
    my $rules = HTTP::Haul::Retry->of(defined $options{retries} ? $options{retries} : $http->{retries});
    $http->_prepare unless $http->{_engine};
    $http->_prepare;
    my $in_order = $options{order} eq 'input';
    my $per_host = defined $options{per_host} ? $options{per_host} : 0;
    my ($engine, $parallel, $memory) = ($http->{_engine}, @options{qw(parallel memory)});
    # libhaul returns its replies in input order in bounded memory. A request that is added again, for
    # a retry or a redirect, comes last there, so its successors wait in `finished`.
    my $batch = HTTP::Haul::Batch->_new($engine, $parallel, $per_host, $in_order, $memory);
    $batch->_limit(@options{qw(rate rate_host limit_rate stall_time)});
    return bless {
        http => $http, batch => $batch, rules => $rules, in_order => $in_order,
        # The number of requests that libhaul has at once. More would only use memory.
        ahead   => 2 * $options{parallel},
        added   => 0,
        turn    => 0,
        running => 0,
        # By number: the requests that are not taken yet, and those of them that have ended. A
        # request that is only a URL has its URL in `states`, others have a hash.
        states => {}, finished => {},
        # The numbers of `finished`, in the order of completion.
        completed => [],
        # Pairs of a time and a number: the requests that wait, the earliest first.
        waiting => [],
    }, $class;
}

# Returns code that returns the requests of an array or of code, one at each call, and an empty list
# at the end. The end of code may also be undef; in an array, undef is a mistake.
sub source_of {
    my ($requests) = @_;
    if (ref $requests eq 'CODE') {
        return sub { my ($request) = $requests->(); return defined $request ? $request : () };
    }
    check_list($requests);
    my $at = 0;
    return sub { return $at < @$requests ? $requests->[$at++] : () };
}

# Dies before anything is sent if an array of requests has one that is undefined.
sub check_list {
    my ($requests) = @_;
    defined or _croak("a request of a batch must not be undef\n") for @$requests;
    return;
}

# Runs the requests of an array or a code reference, and calls `ended` with each response. Returns
# the number of requests.
sub run {
    my ($self, $requests, $ended) = @_;
    my ($states, $waiting, $ahead) = @$self{qw(states waiting ahead)};
    my $is_list = ref $requests eq 'ARRAY';
    check_list($requests) if $is_list;
    my ($at, $count, $is_dry) = (0, 0, 0);
    while (1) {
        # The condition of has_room. A call would cost more than the rest of the loop.
        until ($is_dry || keys(%$states) - @$waiting >= $ahead || @$waiting >= MOST_WAITING) {
            my ($request) = $is_list ? $at < @$requests ? $requests->[$at] : () : $requests->();
            # A callback may have added undef to an array.
            if (!defined $request && !($is_list && $at < @$requests)) { $is_dry = 1; last }
            $at++;
            $self->add($request);
        }
        last unless %$states;
        # Signal handlers run between the waits.
        my ($index, $response, $request) = $self->take(100) or next;
        $count++;
        $ended->($response, $request, $index);
    }
    return $count;
}

# Returns whether another request should be added now.
sub has_room {
    my ($self) = @_;
    my $waiting = @{ $self->{waiting} };
    return keys(%{ $self->{states} }) - $waiting < $self->{ahead} && $waiting < MOST_WAITING;
}

# Returns the number of requests that are not taken yet.
sub pending { return scalar keys %{ $_[0]{states} } }

# Returns the seconds until the next request that waits is due; undef if none waits.
sub due {
    my ($self) = @_;
    my $first = $self->{waiting}[0] or return undef;
    my $left = $first->[0] - HTTP::Haul::Retry::State::now();
    return $left > 0 ? $left : 0;
}

# Returns a descriptor that is readable while a reply can be taken.
sub fd { return $_[0]{batch}->fd }

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

# Adds a request and returns its number. A request that cannot be sent gets its 599 at once.
sub add {
    my ($self, $request) = @_;
    my $http = $self->{http};
    my $rules = $self->{rules};
    my $jar = $http->{cookie_jar};
    $jar = undef if $jar && $jar->isa('HTTP::Haul::Jar');
    # Most requests are only a URL, and need no Perl code but this.
    if (!ref $request && defined $request && !$rules && !$jar && !$http->{default_headers}) {
        my $index = $self->{added};
        if ($self->{batch}->_add_url($index, $request)) {
            $self->{running}++;
            $self->{states}{$index} = $request;
            return $self->{added}++;
        }
    }
    my ($method, $url, $args) = _request($request);
    if (%$args) {
        for my $not (qw(data_callback trailer_callback peer on_step)) {
            _croak("'$not' cannot be used in a batch\n") if defined $args->{$not};
        }
        _croak("content by callback cannot be used in a batch\n") if ref $args->{content} eq 'CODE';
        $rules = HTTP::Haul::Retry->of($args->{retries}) if exists $args->{retries};
    }
    my $index = $self->{added}++;
    # Only what the request has: most are a URL.
    my $fields = $args->{headers} || $http->{default_headers} ? $http->_fields($args->{headers}) : {};
    my %state = (method => $method, url => $url, args => $args, fields => $fields, request => $request);
    $state{content} = $args->{content} if defined $args->{content};
    $state{foreign} = $jar if $jar;
    $state{timings} = 1 if $args->{timings};
    $state{retry} = $rules->state($http->{_holds} ||= {}) if $rules;
    $state{tainted} = 1 if ${^TAINT} && HTTP::Haul::_is_tainted($url);
    $self->{states}{$index} = \%state;
    # Making text of an object may die.
    my $has_text = eval { $_ = "$_" for grep { ref } @state{qw(method url)}; 1 };
    if ($has_text) { $self->_submit($index) }
    else           { $self->_finish($index, HTTP::Haul::_internal_error($url, "$@")) }
    return $index;
}

# Sends a request, unless its host has to be left alone.
sub _submit {
    my ($self, $index) = @_;
    my $state = $self->{states}{$index};
    my $held = $state->{retry} ? $state->{retry}->held($state->{url}) : 0;
    return $self->_wait($index, $held) if $held > 0;
    my $refused;
    eval { $refused = $self->_send($index, $state); 1 } or $refused = HTTP::Haul::_internal_error($state->{url}, "$@");
    return $self->_finish($index, $refused) if $refused;
    $self->{running}++;
    return;
}

# Adds a request to the batch. Returns a response if it cannot be sent.
sub _send {
    my ($self, $index, $state) = @_;
    my ($method, $url, $content) = @$state{qw(method url content)};
    die "Insecure dependency in connect while running with -T switch\n" if $state->{tainted};
    my $has_content = defined $content && length $content;
    # Most requests have no fields of their own, and need no work for them.
    my @list = %{ $state->{fields} } || $state->{foreign} || $has_content ? $self->_field_list($state, $has_content) : ();
    # Without content, only these methods send a Content-Length.
    $content = $method eq 'POST' || $method eq 'PUT' ? '' : undef unless $has_content;
    return $self->{batch}->_add($index, $method, $url, \@list, $content);
}

# Returns the names and values of a request's fields, as a list.
sub _field_list {
    my ($self, $state, $has_content) = @_;
    my %fields = %{ $state->{fields} };
    die "The 'Host' header must not be provided as header option\n" if grep { lc $_ eq 'host' } keys %fields;
    if ($state->{foreign}) {
        require HTTP::Haul::ForeignJar;
        HTTP::Haul::ForeignJar::put($state->{foreign}, $state->{method}, $state->{url}, \%fields);
    }
    my %has = map { lc($_) => 1 } grep { defined $fields{$_} } keys %fields;
    $fields{'Content-Type'} = 'application/octet-stream' if $has_content && !$has{'content-type'};
    my @list;
    # The same fields are left out as in a single request.
    for my $name (sort keys %fields) {
        my ($key, $value) = (lc $name, $fields{$name});
        next if $key eq 'content-length' || $key eq 'transfer-encoding';
        next if $key eq 'user-agent' && !$value;
        next if $key eq 'connection' && !$self->{http}{keep_alive};
        for my $one (grep { defined } ref $value eq 'ARRAY' ? @$value : $value) {
            # Unfolds a value, as C does for a single request.
            (my $text = $one) =~ s/\r?\n\s+/ /g;
            push @list, $name => $text;
        }
    }
    return @list;
}

sub _wait {
    my ($self, $index, $seconds) = @_;
    my $waiting = $self->{waiting};
    my $time = HTTP::Haul::Retry::State::now() + $seconds;
    my ($low, $high) = (0, scalar @$waiting);
    while ($low < $high) {
        my $middle = int(($low + $high) / 2);
        if ($waiting->[$middle][0] <= $time) { $low = $middle + 1 }
        else                                 { $high = $middle }
    }
    splice @$waiting, $low, 0, [$time, $index];
    return;
}

# Returns a finished request as (number, response, request), waiting for it at most so many
# milliseconds; an empty list if there is none.
sub take {
    my ($self, $timeout) = @_;
    my $waiting = $self->{waiting};
    while (@$waiting && $waiting->[0][0] <= HTTP::Haul::Retry::State::now()) {
        $self->_submit((shift @$waiting)->[1]);
    }
    if (%{ $self->{finished} }) {
        my @ready = $self->_ready;
        return @ready if @ready;
    }
    if (@$waiting) {
        my $due = $self->due;
        $timeout = int(1000 * $due) + 1 if 1000 * $due < $timeout;
    }
    if ($self->{running}) {
        my ($index, $response, $request) = $self->{batch}->_next($timeout, $self->{states});
        if (defined $request) {
            $self->{running}--;
            if ($self->{in_order} && $index != $self->{turn}) {
                # A request before this one was added again.
                $self->{states}{$index} = { request => $request };
                $self->{finished}{$index} = $response;
                return;
            }
            $self->{turn}++;
            return ($index, $response, $request);
        }
        $self->_received($index, $response) if defined $index;
    }
    elsif (@$waiting && $timeout > 0) {
        select undef, undef, undef, $timeout / 1000;
    }
    return $self->_ready;
}

# Takes a reply of libhaul: the request ends, is sent again, or follows a redirect.
sub _received {
    my ($self, $index, $response) = @_;
    my $http = $self->{http};
    my $state = $self->{states}{$index};
    if (!ref $state) {
        $state = { method => 'GET', url => $state, args => {}, fields => {}, request => $state };
        $self->{states}{$index} = $state;
    }
    $self->{running}--;
    $response->{url} = $state->{url};
    if ($state->{retry}) {
        my $wait = $state->{retry}->after($response, $state->{method});
        return $self->_wait($index, $wait) if defined $wait;
    }
    if ($response->{protocol} && $state->{foreign}) {
        HTTP::Haul::ForeignJar::take($state->{foreign}, $state->{method}, $state->{url}, $response);
    }
    # Redirects are followed here and not by libhaul, whose rules are others.
    my $followed = $state->{redirects} || [];
    my $location = $http->_redirect_location($response, $state->{method}, scalar @$followed);
    return $self->_finish($index, $response) unless $location;
    push @$followed, $response;
    $state->{redirects} = $followed;
    my $refused = $http->_next_hop($state, $response, $location);
    return $refused ? $self->_finish($index, $refused) : $self->_submit($index);
}

sub _finish {
    my ($self, $index, $response) = @_;
    my $redirects = $self->{states}{$index}{redirects};
    $response->{redirects} = $redirects if $redirects;
    $self->{finished}{$index} = $response;
    push @{ $self->{completed} }, $index unless $self->{in_order};
    return;
}

# Removes and returns a finished request whose turn has come.
sub _ready {
    my ($self) = @_;
    my $index = $self->{in_order} ? $self->{turn} : $self->{completed}[0];
    return unless defined $index && exists $self->{finished}{$index};
    shift @{ $self->{completed} } unless $self->{in_order};
    $self->{turn}++;
    my $state = delete $self->{states}{$index};
    return ($index, delete $self->{finished}{$index}, $state->{request});
}

1;

__END__

=head1 NAME

HTTP::Haul::Queue - requests in progress at the same time

=head1 DESCRIPTION

A part of L<HTTP::Haul>, which programs use by its methods C<each> and C<batch>, or by L<HTTP::Haul::Promise>.

=cut
