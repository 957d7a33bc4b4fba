package HTTP::Haul::Promise;

use strict;
use warnings;

use HTTP::Haul;
use HTTP::Haul::Queue;
use Mojo::IOLoop;
use Mojo::Promise;

our $VERSION = '0.1.0';

sub _croak { require Carp; Carp::croak(@_) }

sub new {
    my ($class, $http, $options) = @_;
    ref $http && eval { $http->isa('HTTP::Haul') } && (!defined $options || ref $options eq 'HASH')
        or _croak("Usage: HTTP::Haul::Promise->new(HTTP, [HASHREF])\n");
    my %options = %{ $options || {} };
    my $loop = delete $options{ioloop} || Mojo::IOLoop->singleton;
    _croak("order cannot be used for single requests\n") if exists $options{order};
    return bless { http => $http, options => \%options, loop => $loop }, $class;
}

sub http { return $_[0]{http} }

for my $name (qw(get head put post patch delete)) {
    my $method = uc $name;
    no strict 'refs';
    *{"${name}_p"} = sub {
        my ($self, $url, $args) = @_;
        @_ == 2 || @_ == 3 && ref $args eq 'HASH' or _croak("Usage: \$async->${name}_p(URL, [HASHREF])\n");
        return $self->request_p($method, $url, $args);
    };
}

sub request_p {
    my ($self, $method, $url, $args) = @_;
    @_ == 3 || @_ == 4 && (!defined $args || ref $args eq 'HASH')
        or _croak("Usage: \$async->request_p(METHOD, URL, [HASHREF])\n");
    my $run = $self->_run;
    my $promise = Mojo::Promise->new->ioloop($self->{loop});
    my $ended = sub {
        my ($response) = @_;
        return $promise->resolve($response) if $response->{protocol};
        (my $reason = $response->{content}) =~ s/\n\z//;
        $promise->reject($reason);
    };
    $run->add([$method, $url, $args], $ended, sub { $promise->reject($_[0]) });
    return $promise;
}

# Returns the queue of single requests. A process forked from the one that began it gets its own, as
# it does after a failure of the queue.
sub _run {
    my ($self) = @_;
    my $run = $self->{run};
    if ($run && $run->{pid} != $$) {
        $run->fail("the request belongs to the parent of this process\n");
    }
    return $run if $run && !$run->{has_failed};
    my $queue = HTTP::Haul::Queue->new($self->{http}, $self->{options});
    return $self->{run} = HTTP::Haul::Promise::Run->new($self->{loop}, $queue);
}

sub each_p {
    my ($self, $requests, $code, $options) = @_;
    ref($requests) =~ /\A(?:ARRAY|CODE)\z/ && ref $code eq 'CODE' && (!defined $options || ref $options eq 'HASH')
        or _croak("Usage: \$async->each_p(REQUESTS, CODEREF, [HASHREF])\n");
    my $source = HTTP::Haul::Queue::source_of($requests);
    my $queue = HTTP::Haul::Queue->new($self->{http}, $self->{options}, $options);
    my $run = HTTP::Haul::Promise::Run->new($self->{loop}, $queue);
    my $promise = Mojo::Promise->new->ioloop($self->{loop});
    my $count = 0;
    my $fill = sub {
        while ($source && $queue->has_room) {
            my @next = $source->();
            if (!@next) { undef $source; last }
            $run->add($next[0], sub { $count++; $code->(@_) });
        }
    };
    $run->start(
        fill   => $fill,
        done   => sub { undef $fill; $promise->resolve($count) },
        failed => sub { undef $fill; $promise->reject($_[0]) },
    );
    return $promise;
}

sub batch_p {
    my ($self, $requests, $options) = @_;
    my @responses;
    my $keep = sub { my ($response, undef, $index) = @_; $responses[$index] = $response };
    return $self->each_p($requests, $keep, $options)
        ->then(sub { return @responses });
}

# A queue in an event loop. The loop keeps the object while requests are in progress.
package HTTP::Haul::Promise::Run;

sub new {
    my ($class, $loop, $queue) = @_;
    # The descriptor of libhaul is not to be closed; Perl closes its copy.
    open my $handle, '<&', $queue->fd or die "cannot watch a batch: $!\n";
    return bless { loop => $loop, queue => $queue, handle => $handle, pid => $$, ended => {}, lost => {} }, $class;
}

# Adds a request; `ended` is called with (response, request, number), or `lost` with the reason if
# the queue fails before.
sub add {
    my ($self, $request, $ended, $lost) = @_;
    my $index = $self->{queue}->add($request);
    $self->{ended}{$index} = $ended;
    $self->{lost}{$index} = $lost if $lost;
    $self->_watch;
    return;
}

# Ends the queue, and gives the reason to all whose requests are in progress.
sub fail {
    my ($self, $reason) = @_;
    $self->{has_failed} = 1;
    return $self->_stop(failed => $reason);
}

# Sets the code that adds requests whenever there is room, and the code to call at the end.
sub start {
    my ($self, %code) = @_;
    @$self{keys %code} = values %code;
    $self->_watch;
    return;
}

sub _watch {
    my ($self) = @_;
    my $reactor = $self->{loop}->reactor;
    if (!$self->{watched}) {
        $self->{watched} = 1;
        $reactor->io($self->{handle} => sub { $self->_pump })->watch($self->{handle}, 1, 0);
    }
    # A request that could not be sent has ended although the descriptor is not readable.
    $reactor->next_tick(sub { $self->{ticks} = 0; $self->_pump }) unless $self->{ticks}++;
    return;
}

# Takes what has ended, adds requests, and sets the timer for those that wait.
sub _pump {
    my ($self) = @_;
    return unless $self->{watched};
    my ($queue, $loop) = @$self{qw(queue loop)};
    my $worked = eval {
        while (my ($index, $response, $request) = $queue->take(0)) {
            delete $self->{lost}{$index};
            (delete $self->{ended}{$index})->($response, $request, $index);
        }
        $self->{fill}->() if $self->{fill};
        1;
    };
    return $self->fail($@) unless $worked;
    return $self->_stop('done') unless $queue->pending;
    $loop->remove(delete $self->{timer}) if $self->{timer};
    my $due = $queue->due;
    $self->{timer} = $loop->timer($due => sub { delete $self->{timer}; $self->_pump }) if defined $due;
    return;
}

sub _stop {
    my ($self, $how, @arguments) = @_;
    $self->{watched} = 0;
    $self->{loop}->reactor->remove($self->{handle});
    $self->{loop}->remove(delete $self->{timer}) if $self->{timer};
    my ($code) = delete @$self{ $how, qw(fill done failed) };
    $code->(@arguments) if $code;
    return unless $how eq 'failed';
    my @lost = values %{ $self->{lost} };
    @$self{qw(ended lost)} = ({}, {});
    $_->(@arguments) for @lost;
    # An error that nobody waits for.
    warn $arguments[0] unless $code || @lost || $self->{pid} != $$;
    return;
}

1;
