package HTTP::Haul::Steps;

# Reports the steps of one request to the code of on_step.

use strict;
use warnings;

use Time::HiRes ();

our $VERSION = '0.1.0';

sub new {
    my ($class, $code, $method, $url) = @_;
    return bless { code => $code, method => $method, url => "$url", began => _now() }, $class;
}

sub _now { return Time::HiRes::clock_gettime(Time::HiRes::CLOCK_MONOTONIC()) }

# Reports a step that happens now, or `at` seconds after the start of the request.
sub report {
    my ($self, $step, $details) = @_;
    my $time = _now() - $self->{began};
    my %details = (method => $self->{method}, url => $self->{url}, time => $time, %{ $details || {} });
    $self->{url} = "$details{url}" if $step eq 'redirect';
    $self->{code}->($step, \%details);
    return;
}

my @phases = (
    [resolve => 'resolved'], [connect => 'connected'], [tls => 'secured'], [sent => 'sent'], [head => 'first_byte'],
);

# Reports the steps of an exchange that has ended, with the times at which they happened.
sub exchange {
    my ($self, $response) = @_;
    my $times = $response->{timings};
    if (!$times) {
        $self->report(error => { error => $response->{error}, message => $response->{content} });
        return;
    }
    my $start = _now() - $self->{began} - ($times->{total} || 0);
    $start = 0 if $start < 0;
    for my $phase (@phases) {
        my ($step, $key) = @$phase;
        # On a kept connection the request is sent at once, and libhaul notes no time for that.
        my $time = $times->{$key};
        $time = 0 if !defined $time && $step eq 'sent' && defined $times->{first_byte};
        next unless defined $time;
        my %more = $step eq 'head' ? (status => $response->{status}, connection => $response->{connection}) : ();
        $self->report($step => { %more, time => $start + $time });
    }
    return;
}

1;

__END__

=head1 NAME

HTTP::Haul::Steps - the steps of a request

=head1 DESCRIPTION

A part of L<HTTP::Haul>, which programs use by its attribute C<on_step>.

=cut
