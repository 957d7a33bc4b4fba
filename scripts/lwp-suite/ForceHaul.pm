package ForceHaul;

# Loaded into each of LWP's tests: haul handles http and https. Each process appends the number of its requests to the file
# HAUL_LWP_LOG.

use strict;
use warnings;
use LWP::Protocol::haul ();

my $of = $$;

END {
    if (defined $ENV{HAUL_LWP_LOG} && $$ == $of) {
        local $?;
        open my $log, '>>', $ENV{HAUL_LWP_LOG} or die "$ENV{HAUL_LWP_LOG}: $!";
        printf {$log} "%d %s\n", $LWP::Protocol::haul::REQUESTS, $0;
    }
}

1;
