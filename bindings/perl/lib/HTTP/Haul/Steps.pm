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

# Reports a step that happens now.
sub report {
    my ($self, $step, $details) = @_;
    my $time = _now() - $self->{began};
    my %details = (method => $self->{method}, url => $self->{url}, time => $time, %{ $details || {} });
    $self->{url} = "$details{url}" if $step eq 'redirect';
    $self->{code}->($step, \%details);
    return;
}

# The code that libhaul calls during an exchange, with the name of a step and the status.
sub of_exchange {
    my ($self) = @_;
    return sub {
        my ($step, $status) = @_;
        $self->report($step => $step eq 'head' ? { status => $status } : {});
    };
}

# Reports that an exchange has failed.
sub exchange {
    my ($self, $response) = @_;
    return if $response->{timings};
    $self->report(error => { error => $response->{error}, message => $response->{content} });
    return;
}

1;

__END__

=head1 NAME

HTTP::Haul::Steps - the steps of a request

=head1 DESCRIPTION

A part of L<HTTP::Haul>, which programs use by its attribute C<on_step>.

=cut
