use strict;
use warnings;
use lib '.';
use Config;
BEGIN { require threads if $Config{useithreads} }
use Test::More;
use t::Server;
use POSIX ();
use HTTP::Haul;
use HTTP::Haul::Jar;

delete @ENV{qw(http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY no_proxy)};

my $server = t::Server->start(sub {
    my ($request) = @_;
    return [200, {}, 'b' x 3_000_000] if $request->{target} eq '/large';
    return [200, { 'Set-Cookie' => "c$1=1" }, ''] if $request->{target} =~ m{\A/set/(\d+)};
    return [200, {}, "$request->{connection}.$request->{number}"];
});
my $jar = HTTP::Haul::Jar->new;
my $http = HTTP::Haul->new(cookie_jar => $jar);
my ($mine) = $http->get($server->url('/'))->{content} =~ /\A(\d+)/;

# A child does not touch its parent's connections.
pipe my $read, my $write or die $!;
my $pid = fork;
die $! unless defined $pid;
if (!$pid) {
    print {$write} $http->get($server->url('/'))->{content}, "\n";
    close $write;
    undef $http;
    POSIX::_exit(0);
}
close $write;
chomp(my $child = <$read>);
waitpid $pid, 0;
like($child, qr/\A\d+\.1\z/, 'child opens a connection');
isnt($child, "$mine.1", 'child does not use the connection of the parent');
is($http->get($server->url('/'))->{content}, "$mine.2", 'parent continues to use its connection');

# A child cannot read a response of its parent, which would lose the bytes.
my ($got, $forked) = (0);
my $response = $http->get($server->url('/large'), { data_callback => sub {
    $got += length $_[0];
    defined $forked and return;
    defined($forked = fork) or die $!;
    waitpid $forked, 0 if $forked;
} });
if (!$forked) {
    POSIX::_exit($response->{status} == 599 && $response->{content} =~ /belongs to the parent/ ? 0 : 1);
}
is($?, 0, 'child cannot read a body of the parent');
is("$response->{status} $got", '200 3000000', 'parent reads the whole body');

SKIP: {
    skip 'this Perl has no threads', 4 unless $Config{useithreads};
    my @threads = map {
        my $number = $_;
        threads->create(sub {
            my @got = map { $http->get($server->url("/set/$number"))->{status} } 1 .. 20;
            return scalar grep { $_ == 200 } @got;
        });
    } 1 .. 4;
    is(join(' ', map { $_->join } @threads), '20 20 20 20', 'object works in threads');
    is($jar->count, 4, 'threads share a jar');
    is($http->get($server->url('/'))->{status}, 200, 'object of the main thread still works');
    # One that a thread makes and its parent has not.
    is(threads->create(sub { HTTP::Haul->new->get($server->url('/'))->{status} })->join, 200, 'thread can create an object');
}
done_testing;
