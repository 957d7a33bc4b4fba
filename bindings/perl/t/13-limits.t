use strict;
use warnings;
use lib '.';
use Test::More;
use Time::HiRes qw(time sleep alarm);
use t::Server;
use HTTP::Haul;

delete @ENV{qw(http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY no_proxy)};

my $server = t::Server->start(sub {
    my ($request) = @_;
    my $target = $request->{target};
    return [200, {}, 'x' x $1] if $target =~ m{\A/(\d+)};
    return sub { my $socket = $_[0]; t::Server::write_all($socket, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" . "64\r\n" . 'y' x 100 . "\r\n" x 1 . "64\r\n" . 'y' x 100 . "\r\n0\r\n\r\n"); 1 } if $target eq '/chunks';
    return sub { t::Server::write_all($_[0], "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort"); 0 } if $target eq '/short';
    return sub { 0 } if $target eq '/empty';
    return sub { t::Server::write_all($_[0], "this is not HTTP\r\n\r\n"); 0 } if $target eq '/garbage';
    # /hang: no answer, and the connection stays.
    return sub { 1 } if $target eq '/hang';
    return sub { t::Server::write_all($_[0], "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort"); 1 } if $target eq '/stall';
    return [200, {}, 'ok'];
});

my $small = HTTP::Haul->new(max_size => 100);
is($small->get($server->url('/100'))->{status}, 200, 'body of max_size is returned');
for my $path (qw(/101 /1000000 /chunks)) {
    my $response = $small->get($server->url($path));
    is($response->{status}, 599, "$path is too large");
    is($response->{content}, "Size of response body exceeds the maximum allowed of 100\n", 'message has the limit');
}
is(length $small->get($server->url('/1'))->{content}, 1, 'object works after that');
# Alone, and with options, a request of a batch takes different ways.
for my $request ($server->url('/1000000'), [GET => $server->url('/chunks')], { url => $server->url('/101'), timings => 1 }) {
    for my $order (qw(input completion)) {
        my ($response) = $small->batch([$request], { order => $order });
        is("$response->{status} $response->{content}", "599 Size of response body exceeds the maximum allowed of 100\n", 'max_size applies in a batch');
    }
}
my $given;
$small->each([$server->url('/100'), $server->url('/101')], sub { $given .= "$_[2]:$_[0]{status} " }, { order => 'input' });
is($given, '0:200 1:599 ', 'max_size applies in each');
$small->max_size(undef);
is(length +($small->batch([$server->url('/101')]))[0]{content}, 101, 'max_size can be turned off');
$small->max_size(100);

like(HTTP::Haul->new->get($server->url('/short'))->{content}, qr/Unexpected end of stream/, 'truncated body is 599');
is(HTTP::Haul->new->get($server->url('/empty'))->{status}, 599, 'connection without response is 599');
is(HTTP::Haul->new->get($server->url('/garbage'))->{status}, 599, 'response that is not HTTP is 599');

# Bounds are wide because a machine may be slow; a limit that has no effect would take forever.
my $quick = HTTP::Haul->new(timeout => 0.3);
for my $path (qw(/hang /stall)) {
    my $start = time;
    my $response = $quick->get($server->url($path));
    is($response->{status}, 599, "$path: a time limit");
    like($response->{content}, qr/timed out/i, 'message says timed out');
    cmp_ok(time - $start, '<', 20, 'timeout ends the wait');
}

# A handler that dies ends the wait immediately, with the same result as in HTTP::Tiny.
{
    my $http = HTTP::Haul->new(timeout => 60);
    local $SIG{ALRM} = sub { die "alarm rang\n" };
    my $start = time;
    alarm 0.3;
    my $response = $http->get($server->url('/hang'));
    alarm 0;
    is($response->{status}, 599, 'signal handler that dies is 599');
    is($response->{content}, "alarm rang\n", '599 has the message of the handler');
    cmp_ok(time - $start, '<', 20, 'signal handler ends the wait');
    is($http->get($server->url('/x'))->{status}, 200, 'object works after that');
}

# A handler that returns does not end the wait.
{
    my $http = HTTP::Haul->new(timeout => 1);
    my $rang = 0;
    local $SIG{ALRM} = sub { $rang++ };
    alarm 0.2;
    my $response = $http->get($server->url('/hang'));
    is($rang, 1, 'signal handler runs during a request');
    like($response->{content}, qr/timed out/i, 'request continues to its timeout');
}

# Requests inside a signal handler.
{
    my $http = HTTP::Haul->new(timeout => 1);
    my $inner;
    local $SIG{ALRM} = sub { $inner = $http->get($server->url('/x'))->{status} };
    alarm 0.2;
    $http->get($server->url('/hang'));
    is($inner, 200, 'signal handler may make a request');
}
done_testing;
