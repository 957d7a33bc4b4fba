use strict;
use warnings;
use lib '.';
use Test::More;
use t::Server;
use HTTP::Haul;

delete @ENV{qw(http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY no_proxy)};

my $tries = 0;
my $server = t::Server->start(sub {
    my ($request) = @_;
    return [302, { Location => '/page' }, ''] if $request->{target} eq '/go';
    return [503, {}, ''] if $request->{target} eq '/busy' && !$tries++;
    return [200, {}, 'page'];
});

# timings and connection.
my $http = HTTP::Haul->new(timings => 1);
my $response = $http->get($server->url('/page'));
my $times = $response->{timings};
ok($times->{connected} > 0 && $times->{connected} <= $times->{sent}, 'request is sent after connecting');
ok($times->{sent} <= $times->{first_byte} && $times->{first_byte} <= $times->{total}, 'reply arrives after the request');
ok(!exists $times->{secured}, 'http has no time of TLS');
is("$response->{connection}{address} $response->{connection}{port} $response->{connection}{reused}", '127.0.0.1 ' . $server->port . ' 0', 'connection has its address');
$response = $http->get($server->url('/page'));
is($response->{connection}{reused}, 1, 'second request uses the same connection');
ok(!exists $response->{timings}{connected}, 'second request does not connect');
is(($http->batch([$server->url('/page')]))[0]{connection}{port}, $server->port, 'batch has connections');
$http->timings(0);
ok(!exists $http->get($server->url('/page'))->{timings}, 'timings can be turned off');
ok(exists HTTP::Haul->new->get($server->url('/page'), { timings => 1 })->{timings}, 'request may ask for timings');
ok(!exists HTTP::Haul->new->get($server->url('/page'))->{timings}, 'timings are off by default');

# on_step.
my (@steps, @details);
my $record = sub { my ($step, $details) = @_; push @steps, $step; push @details, $details };
$response = HTTP::Haul->new(on_step => $record)->get($server->url('/go'));
is($response->{content}, 'page', 'request with on_step succeeds');
is(join(' ', grep { $_ ne 'resolve' } @steps), 'connect sent head redirect sent head done', 'steps of a redirect are reported');
is_deeply([map { $_->{status} } grep { defined $_->{status} } @details], [302, 302, 200, 200], 'steps have the status');
is($details[-1]{connection}{port}, $server->port, 'last step has the connection');
is($details[-1]{url}, $server->url('/page'), 'step after a redirect has the new URL');
my $in_order = 1;
$details[$_ - 1]{time} <= $details[$_]{time} + 0.001 or $in_order = 0 for 1 .. $#details;
ok($in_order, 'times grow');
@steps = @details = ();
HTTP::Haul->new(retries => { backoff => 0.001 })->get($server->url('/busy'), { on_step => $record });
is(join(' ', grep { $_ ne 'resolve' } @steps), 'connect sent head retry sent head done', 'retry is reported');
my ($retry) = grep { exists $_->{wait} } @details;
is("$retry->{status} $retry->{method}", '503 GET', 'retry has its reason');
@steps = @details = ();
HTTP::Haul->new(on_step => $record)->get('http://127.0.0.1:1/');
is(join(' ', grep { $_ ne 'resolve' } @steps) . " $details[-2]{error}{connect}", 'error done 1', 'failure is reported');
my @order;
HTTP::Haul->new(on_step => sub { push @order, $_[0] })->get($server->url('/page'), { data_callback => sub { push @order, 'data' } });
is(join(' ', grep { $_ ne 'resolve' } @order), 'connect sent head data done', 'steps are reported while they happen');
is($details[-1]{connection}, undef, 'failed request has no connection');
is(HTTP::Haul->new(on_step => sub { die "no\n" })->get($server->url('/page'))->{content}, "no\n", 'on_step that dies is 599');
my $asked = 0;
my $content = sub { $asked++ < 50 ? 'x' x 65536 : '' };
my $failed = HTTP::Haul->new(on_step => sub { die "no\n" })->put($server->url('/page'), { content => $content });
is("$failed->{content}$asked", "no\n0", 'on_step that dies ends an upload');
ok(!eval { HTTP::Haul->new(on_step => 1); 1 }, 'on_step that is no code dies');
done_testing;
