package HTTP::Tiny;

# HTTP::Haul under the name of HTTP::Tiny, for HTTP::Tiny's own tests. The tests replace HTTP::Tiny's sockets with files; here a
# local server (Replay) serves those files, and is the peer of every request.

use strict;
use warnings;

use HTTP::Haul ();
use Replay     ();

our @ISA = ('HTTP::Haul');
# The version of the tests.
our $VERSION = '0.080';

# The number of requests.
our $_requests = 0;

sub new {
    my ($class, %given) = @_;
    # The names of the proxies do not exist.
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
    # A proxy is used as such, without a peer.
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
