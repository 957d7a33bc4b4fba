#!/usr/bin/perl
# Reads and writes of Search::Elasticsearch in turn, over its classes of connections, for the job perl:
#
#   search.pl CXN HOST PORT COUNT
#
# CXN is a class below Search::Elasticsearch::Cxn. A round reads a document of each size and writes one of that size. The server
# has bodies under /bytes/N, which are no JSON, so the serializer passes them on as they are: the figures are those of the
# connections. Prints the length of all bodies of replies.
use strict;
use warnings;
use FindBin ();
use lib map { "$FindBin::Bin/../../bindings/perl/blib/$_" } qw(arch lib);

BEGIN {
    $INC{'Search/Elasticsearch/Serializer/Plain.pm'} = __FILE__;

    package Search::Elasticsearch::Serializer::Plain;
    use Moo;
    sub encode        { $_[1] }
    sub decode        { $_[1] }
    sub encode_pretty { $_[1] }
    sub encode_bulk   { $_[1] }
    sub mime_type     { 'application/octet-stream' }
    with 'Search::Elasticsearch::Role::Serializer';
}

use Search::Elasticsearch;
use Search::Elasticsearch::Role::Cxn ();

# Replies need not come from Elasticsearch.
$Search::Elasticsearch::Role::Cxn::PRODUCT_CHECK_VALUE = '';

my ($cxn, $host, $port, $count) = @ARGV;
my @sizes     = (100, 1_000, 10_000, 100_000, 300_000);
my $transport = Search::Elasticsearch->new(nodes => ["http://$host:$port"], cxn => $cxn, serializer => 'Plain')->transport;
my %documents = map { $_ => 'x' x $_ } @sizes;
my $total     = 0;
for (1 .. $count) {
    for my $size (@sizes) {
        $total += length $transport->perform_request(method => 'GET', path => "/bytes/$size");
        $total += length $transport->perform_request(method => 'PUT', path => '/bytes/100', body => $documents{$size});
    }
}
print "$total\n";
