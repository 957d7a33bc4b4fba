use strict;
use warnings;
use lib '.';
use Test::More;
use Time::HiRes qw(time);
use t::Server;
use HTTP::Haul;

delete @ENV{qw(http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY no_proxy)};
eval { require Mojo::IOLoop; require Mojo::Promise; 1 } or plan skip_all => 'Mojolicious is not installed';
require HTTP::Haul::Promise;

my %tries;
my $server = t::Server->start(sub {
    my ($request) = @_;
    my $target = $request->{target};
    return [302, { Location => '/page/1' }, ''] if $target eq '/go';
    return [303, { Location => '/page/1' }, ''] if $target eq '/see';
    return [503, {}, ''] if $target =~ m{\A/busy} && !$tries{$target}++;
    return sub { 1 } if $target eq '/hang';
    return [404, {}, 'no'] if $target eq '/none';
    return [200, {}, "$request->{method} $target $request->{body}"];
});
my $guard = Mojo::IOLoop->timer(60 => sub { die "the loop does not end\n" });
my $async = HTTP::Haul::Promise->new(HTTP::Haul->new(retries => { backoff => 0.01 }));

# Single requests.
my (@got, $failed);
my $keep = sub { push @got, $_[0]{content} };
$async->get_p($server->url('/page/1'))->then($keep)->wait;
is_deeply(\@got, ['GET /page/1 '], 'promise is resolved with the response');
@got = ();
$async->post_p($server->url('/page/2'), { content => 'body' })->then($keep)->wait;
$async->get_p($server->url('/none'))->then($keep)->wait;
$async->get_p($server->url('/go'))->then($keep)->wait;
$async->post_p($server->url('/see'), { content => 'body' })->then($keep)->wait;
$async->get_p($server->url('/busy'))->then($keep)->wait;
is_deeply(\@got, ['POST /page/2 body', 'no', ('GET /page/1 ') x 2, 'GET /busy '], 'bodies, redirects and retries work in the loop');
for my $url ('http://127.0.0.1:1/', 'no url') {
    undef $failed;
    $async->get_p($url, { retries => 0 })->catch(sub { $failed = shift })->wait;
    like($failed, $url eq 'no url' ? qr/\ACannot parse URL/ : qr/\ACould not connect/, 'failure rejects the promise');
}
{
    package Textless;
    use overload '""' => sub { die "no text\n" }, fallback => 1;
}
$failed = 'died';
eval { $async->get_p(bless [], 'Textless')->catch(sub { $failed = shift })->wait };
is($failed, 'no text', 'URL whose text cannot be made rejects the promise');
HTTP::Haul::Promise->new(HTTP::Haul->new(max_size => 10))->get_p($server->url('/page/12345'))->catch(sub { $failed = shift })->wait;
is($failed, 'Size of response body exceeds the maximum allowed of 10', 'max_size rejects the promise');

# The loop runs during requests.
my $ticks = 0;
my $ticker = Mojo::IOLoop->recurring(0.01 => sub { $ticks++ });
HTTP::Haul::Promise->new(HTTP::Haul->new(timeout => 0.3))->get_p($server->url('/hang'))->catch(sub { $failed = shift })->wait;
like($failed, qr/\ATimed out/, 'time limit rejects the promise');
cmp_ok($ticks, '>', 0, 'timers run while a request waits');
Mojo::IOLoop->remove($ticker);

# Many at once.
@got = ();
Mojo::Promise->all(map { $async->get_p($server->url("/page/$_")) } 1 .. 100)->then(sub { @got = map { $_->[0]{content} } @_ })->wait;
is_deeply(\@got, [map { "GET /page/$_ " } 1 .. 100], 'all of Mojo::Promise waits for 100 requests');
my @urls = map { $server->url("/busy/$_") } 1 .. 200;
my (%seen, $count);
$async->each_p(\@urls, sub { $seen{ $_[1] } = $_[0]{status} })->then(sub { $count = shift })->wait;
is($count, 200, 'each_p is resolved with the number');
is_deeply(\%seen, { map { $_ => 200 } @urls }, 'each_p calls the code for each request');
my $next = 0;
my @order;
$async->each_p(sub { $next < 300 ? $server->url('/page/' . $next++) : () }, sub { push @order, $_[2] }, { order => 'input', parallel => 8 })->wait;
is_deeply(\@order, [0 .. 299], 'each_p takes requests from code, and keeps the input order');
my @responses;
$async->batch_p([$urls[0], 'no url', 'http://127.0.0.1:1/', $server->url('/none')], { retries => 0 })->then(sub { @responses = @_ })->wait;
is_deeply([map { $_->{status} } @responses], [200, 599, 599, 404], 'batch_p is resolved with all responses');
$async->batch_p([])->then(sub { $count = @_ })->wait;
is($count, 0, 'batch_p of nothing is resolved');
$async->each_p(\@urls, sub { die "enough\n" })->catch(sub { $failed = shift })->wait;
is($failed, "enough\n", 'code that dies rejects the promise');
ok(!eval { $async->each_p([$urls[0], undef, $urls[1]], sub { }); 1 }, 'undef in a list of requests dies');
like($@, qr/must not be undef/, 'message names undef');
my @two = ($urls[0], undef, $urls[1]);
$async->each_p(sub { shift @two }, sub { })->then(sub { $count = shift })->wait;
is($count, 1, 'undef ends the requests of code');
$async->batch_p([@urls[0, 1]], { parallel => undef, per_host => undef, order => undef })->then(sub { @responses = @_ })->wait;
is_deeply([map { $_->{status} } @responses], [200, 200], 'undefined options are the defaults');
$async->each_p([{}], sub { })->catch(sub { $failed = shift })->wait;
like($failed, qr/needs a url/, 'request that is not valid rejects the promise');
ok(!eval { $async->get_p; 1 } && !eval { HTTP::Haul::Promise->new; 1 } && !eval { $async->each_p('x', sub { }); 1 }, 'wrong arguments die');

# A failure of the queue.
{
    no warnings qw(once redefine);
    local *HTTP::Haul::Queue::take = sub { die "broken\n" };
    my @reasons;
    my @lost = map { $async->get_p($server->url('/page/1'))->catch(sub { push @reasons, @_ }) } 1 .. 2;
    Mojo::Promise->all(@lost)->wait;
    is("@reasons", "broken\n broken\n", 'failure of the queue rejects all promises');
}
my $got;
$async->get_p($server->url('/page/1'))->then(sub { $got = $_[0]{status} })->wait;
is($got, 200, 'object works after a failure of the queue');

# Nothing stays in the loop.
Mojo::IOLoop->remove($guard);
alarm 30;
Mojo::IOLoop->start;
alarm 0;
pass('the loop ends when no request is in progress');

# A child process uses the object, with the loop that it inherited or an empty one.
for my $resets (0, 1) {
    my ($status, $reason) = ('none', 'none');
    $async->get_p($server->url('/hang'))->catch(sub { $reason = shift });
    pipe my $reader, my $writer or die $!;
    my $pid = fork;
    if (!$pid) {
        Mojo::IOLoop->reset if $resets;
        alarm 30;
        $async->get_p($server->url('/page/1'))->then(sub { $status = $_[0]{status} }, sub { $status = "@_" })->wait;
        Mojo::IOLoop->one_tick until $reason ne 'none';
        syswrite $writer, "$status $reason";
        require POSIX;
        POSIX::_exit(0);
    }
    close $writer;
    is(join('', <$reader>), "200 the request belongs to the parent of this process\n", 'child process makes its own requests');
    waitpid $pid, 0;
}
$got = 0;
$async->get_p($server->url('/page/1'))->then(sub { $got = $_[0]{status} })->wait;
is($got, 200, 'object still works in the parent');
done_testing;
