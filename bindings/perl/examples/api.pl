#!/usr/bin/perl
# Lists the items of a JSON API, page by page, and adds one. Busy servers and broken connections are
# tried again.
#
#   API_TOKEN=secret perl api.pl http://127.0.0.1:8000/items [NAME]
use strict;
use warnings;
use HTTP::Haul;

my ($url, $name) = @ARGV;
defined $url or die "usage: api.pl URL [NAME]\n";
my $http = HTTP::Haul->new(
    timeout         => 20,
    default_headers => { Authorization => 'Bearer ' . ($ENV{API_TOKEN} || '') },
    retries         => { total => 5, backoff => 0.1, max_retry_after => 60 },
);

sub checked {
    my ($response) = @_;
    return $response->{json} if $response->{success} && !defined $response->{json_error};
    die "$response->{url}: $response->{status} ", $response->{json_error} || $response->{content}, "\n";
}

# A POST is not repeated on its own: a server may carry it out twice. This API knows the key.
if (defined $name) {
    my $added = checked($http->post_json($url, { name => $name }, {
        headers => { 'Idempotency-Key' => join '-', $$, time, int rand 1e9 },
        retries => { allowed_methods => ['POST'], backoff => 0.1 },
    }));
    print "added $added->{name}\n";
}

my $next = $url;
while (defined $next) {
    my $page = checked($http->get_json($next));
    print "$_->{name}\n" for @{ $page->{items} };
    $next = $page->{next};
}
