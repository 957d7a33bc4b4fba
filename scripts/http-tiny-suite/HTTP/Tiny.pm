package HTTP::Tiny;

# HTTP::Haul under HTTP::Tiny's name, for HTTP::Tiny's own tests: a subclass that changes nothing but where a request goes. Its
# tests replace HTTP::Tiny's sockets by files; here those files are played by a server on loopback (Replay), which is every
# request's peer.

use strict;
use warnings;

use HTTP::Haul ();
use Replay     ();

our @ISA = ('HTTP::Haul');
# The version of the tests.
our $VERSION = '0.080';

# How many requests came by here.
our $_requests = 0;

sub new {
    my ($class, %given) = @_;
    # The proxies have names that are nowhere.
    my $proxy = $given{proxy};
    $given{proxy} = Replay::as_proxy($proxy) if defined $proxy;
    my $self = $class->SUPER::new(%given);
    $self->{_through} = $proxy;
    return $self;
}

sub request {
    my ($self, @given) = @_;
    return $self->SUPER::request(@given) unless @given == 2 || @given == 3 && ref $given[2] eq 'HASH';
    $_requests++;
    my $server = Replay::begin($self->{_through});
    # A tunnel or a proxy is reached as what it is.
    $given[2] = { %{ $given[2] || {} }, $self->{_through} ? () : (peer => $server) };
    my $response = $self->SUPER::request(@given);
    Replay::end();
    return $response;
}

sub END {
    if (defined(my $file = $ENV{HAUL_TINY_LOG})) {
        local $?;
        open my $log, '>>', $file or die "$file: $!";
        print {$log} "$_requests $0\n";
    }
}

1;
