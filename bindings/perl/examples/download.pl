#!/usr/bin/perl
# Downloads a file and shows the progress. FILE appears only when it is complete.
#
#   perl download.pl http://127.0.0.1:8000/big.iso big.iso
use strict;
use warnings;
use HTTP::Haul;

my ($url, $file) = @ARGV;
defined $file or die "usage: download.pl URL FILE\n";
my $http = HTTP::Haul->new(retries => 3);

open my $out, '>', "$file.part" or die "$file.part: $!\n";
binmode $out;
my ($done, $shown) = (0, -1);
my $response = $http->get($url, {
    data_callback => sub {
        my ($bytes, $so_far) = @_;
        print {$out} $bytes or die "$file.part: $!\n";
        $done += length $bytes;
        my $total = $so_far->{headers}{'content-length'} or return;
        my $percent = int 100 * $done / $total;
        print STDERR "\r$percent %" if $percent != $shown;
        $shown = $percent;
    },
    on_step => sub {
        my ($step, $details) = @_;
        print STDERR "status $details->{status}, next try in $details->{wait} s\n" if $step eq 'retry';
    },
});
print STDERR "\n";
my $closed = close $out;
if (!$response->{success} || !$closed) {
    unlink "$file.part";
    die $response->{status} == 599 ? $response->{content} : "$url: $response->{status} $response->{reason}\n";
}
rename "$file.part", $file or die "$file: $!\n";
print "$file: $done bytes\n";
