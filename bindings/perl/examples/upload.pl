#!/usr/bin/perl
# Uploads files: one by PUT, read piece by piece, or several as a form.
#
#   perl upload.pl http://127.0.0.1:8000/big.iso big.iso
#   perl upload.pl http://127.0.0.1:8000/photos a.jpg b.jpg
use strict;
use warnings;
use HTTP::Haul;

my ($url, @files) = @ARGV;
@files or die "usage: upload.pl URL FILE...\n";
my $http = HTTP::Haul->new;
my $response = @files == 1 ? put($files[0]) : post_form(@files);
die $response->{content} if $response->{status} == 599;
print "$response->{status} $response->{reason}\n";
exit !$response->{success};

sub put {
    my ($file) = @_;
    open my $in, '<', $file or die "$file: $!\n";
    binmode $in;
    my ($size, $done) = (-s $in, 0);
    my $piece = sub {
        my $got = read $in, my $bytes, 1 << 16;
        die "$file: $!\n" unless defined $got;
        $done += $got;
        print STDERR "\r$done of $size bytes";
        return $bytes;
    };
    my $response = $http->put($url, { headers => { 'Content-Length' => $size }, content => $piece });
    print STDERR "\n";
    return $response;
}

sub post_form {
    return $http->post_multipart($url, [map { (file => { file => $_ }) } @_]);
}
