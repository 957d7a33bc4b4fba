#!/usr/bin/perl
# Prints the status and the address of each page that a site links to, level by level.
#
#   perl crawler.pl http://127.0.0.1:8000/ [LEVELS]
use strict;
use warnings;
use HTTP::Haul;

my ($start, $levels) = @ARGV;
defined $start or die "usage: crawler.pl URL [LEVELS]\n";
my ($site) = $start =~ m{\A(https?://[^/?#]+)}i or die "not an http or https URL: $start\n";
my $http = HTTP::Haul->new(agent => 'crawler-example ', max_size => 5 << 20, retries => 2);

# Ctrl-C ends the run after the pages that have arrived.
local $SIG{INT} = sub { die "interrupted\n" };

my %seen = ($start => 1);
my @level = ($start);
my $pages = 0;
for (1 .. $levels || 5) {
    my @found;
    eval {
        $http->each(\@level, sub {
            my ($response, $url) = @_;
            $pages++;
            print "$response->{status} $url\n";
            return unless $response->{success} && ($response->{headers}{'content-type'} || '') =~ m{\Atext/html}i;
            while ($response->{content} =~ /<a\s[^>]*?\bhref\s*=\s*["']([^"'#]+)/gi) {
                my $link = $1;
                $link = $site . $link if $link =~ m{\A/(?!/)};
                next unless $link =~ m{\A\Q$site\E(?:/|\z)};
                push @found, $link unless $seen{$link}++;
            }
        }, { rate_host => 50 });
        1;
    } or do { print STDERR $@; last };
    @level = @found or last;
}
print STDERR "$pages pages\n";
