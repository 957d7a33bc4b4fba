use strict;
use warnings;
use lib '.';
use Test::More;
use File::Temp;
use t::Server;
use HTTP::Haul;

delete @ENV{qw(http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY no_proxy)};
my ($strace) = grep { -x } map { "$_/strace" } split /:/, $ENV{PATH};
plan skip_all => 'strace is not installed' unless $strace;
my $works = File::Temp->new;
plan skip_all => 'strace cannot trace here' if system("$strace -o $works true 2>/dev/null") != 0;

my $server = t::Server->start(sub { my ($request) = @_; [200, {}, 'x' x 300] });

# The system calls between two marks, each a write to a descriptor that is not open.
my $calls = sub {
    my ($code) = @_;
    my $trace = File::Temp->new;
    my $program = <<"END";
use HTTP::Haul;
my \$http = HTTP::Haul->new;
my \$url = \$ARGV[0];
sub mark { syswrite STDERR, "mark\\n" }
my \$call = sub { $code };
\$call->() for 1 .. 3;
mark();
\$call->()->{success} or die for 1 .. 10;
mark();
END
    system($strace, '-f', '-o', "$trace", $^X, (map { "-I$_" } @INC), '-e', $program, $server->url('/')) == 0 or return;
    open my $in, '<', "$trace" or die $!;
    my @lines = grep { !/\+\+\+|---/ } <$in>;
    my @marks = grep { $lines[$_] =~ /"mark/ } 0 .. $#lines;
    my %count;
    $lines[$_] =~ /\A\d+\s+(\w+)\(([^)]*)/ and $count{$1}++ for $marks[0] + 1 .. $marks[1] - 1;
    return \%count;
};
open my $stderr, '>&', \*STDERR or die $!;
open STDERR, '>', File::Spec->devnull or die $!;
my %seen = (
    GET       => $calls->('$http->get($url)'),
    POST      => $calls->('$http->post_form($url, { a => 1, b => 2 })'),
    multipart => $calls->('$http->post_multipart($url, { a => 1, b => { content => "x" x 1000, filename => "f" } })'),
);
open STDERR, '>&', $stderr or die $!;
for my $kind (sort keys %seen) {
    my %count = %{ $seen{$kind} || {} };
    my $sends = 0;
    $sends += $count{$_} || 0 for qw(write writev sendto sendmsg);
    is($sends, 10, "$kind: one send a request");
    my $all = 0;
    $all += $_ for values %count;
    # Perl itself may ask for memory now and then.
    my $memory = 0;
    $memory += delete $count{$_} || 0 for qw(brk mmap munmap mremap getrandom);
    is($all - $memory, 30, "$kind: three system calls a request") or diag explain \%count;
}
done_testing;
