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
like($child, qr/\A\d+\.1\z/, 'a child has a connection of its own');
isnt($child, "$mine.1", 'another one');
is($http->get($server->url('/'))->{content}, "$mine.2", 'the parent goes on with its own');

# Nor does it read on in what its parent reads: it would take what the parent waits for.
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
is($?, 0, 'a child is told that a body is not its own');
is("$response->{status} $got", '200 3000000', 'and the parent has all of it');

SKIP: {
    skip 'this Perl has no threads', 4 unless $Config{useithreads};
    my @threads = map {
        my $number = $_;
        threads->create(sub {
            my @got = map { $http->get($server->url("/set/$number"))->{status} } 1 .. 20;
            return scalar grep { $_ == 200 } @got;
        });
    } 1 .. 4;
    is(join(' ', map { $_->join } @threads), '20 20 20 20', 'objects in threads');
    is($jar->count, 4, 'share their jar');
    is($http->get($server->url('/'))->{status}, 200, 'and the first one goes on');
    # One that a thread makes and its parent has not.
    is(threads->create(sub { HTTP::Haul->new->get($server->url('/'))->{status} })->join, 200, 'an object of a thread');
}
done_testing;
