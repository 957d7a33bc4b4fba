# Signal handlers that Perl calls at once: of POSIX::sigaction without `safe`, and with
# PERL_SIGNALS=unsafe.
use strict;
use warnings;
use lib '.';
use Test::More;
use POSIX ();
use t::Server;
use HTTP::Haul;

delete @ENV{qw(http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY no_proxy)};
plan skip_all => 'no signals here' if $^O eq 'MSWin32';

# The signal comes while the client waits for the response.
my $server = t::Server->start(sub {
    my ($request) = @_;
    return [200, {}, $request->{target}] if $request->{target} eq '/page';
    kill USR1 => getppid;
    return sub { 1 };
});
my $descriptors = sub { return scalar(() = glob '/proc/self/fd/*') };
my $http = HTTP::Haul->new(timeout => 30);
my $handle = sub { POSIX::sigaction(POSIX::SIGUSR1(), POSIX::SigAction->new(@_)) or die $! };

$http->get($server->url('/page'));
my $open = $descriptors->();
$handle->(sub { die "stop\n" });
for my $try (1 .. 5) {
    my $response = eval { $http->get($server->url('/signal')) } || { status => 'none', content => $@ };
    is("$response->{status} $response->{content}", "599 stop\n", 'immediate handler that dies is 599');
}
cmp_ok($descriptors->(), '<=', $open + 1, 'no connection of an ended request stays open');
is($http->get($server->url('/page'))->{content}, '/page', 'object works after that');
my $current = POSIX::SigAction->new;
POSIX::sigaction(POSIX::SIGUSR1(), undef, $current);
ok(!$current->safe, 'handler is immediate again after the request');

ok(!eval { $http->each([$server->url('/signal')], sub { }); 1 }, 'immediate handler that dies ends each');
is($@, "stop\n", 'message of each is that of the handler');

# A callback that sets another handler.
$http->post($server->url('/page'), { content => sub { $handle->('IGNORE'); return '' } });
POSIX::sigaction(POSIX::SIGUSR1(), undef, $current);
is($current->handler, 'IGNORE', 'handler of a callback stays');

my $with_info = POSIX::SigAction->new(sub { die "stop\n" }, POSIX::SigSet->new, POSIX::SA_SIGINFO());
POSIX::sigaction(POSIX::SIGUSR1(), $with_info);
my $response = eval { $http->get($server->url('/signal')) } || { status => 'none' };
is($response->{status}, 599, 'immediate handler with SA_SIGINFO that dies is 599');
$SIG{USR1} = 'DEFAULT';

my $program = <<'END';
use t::Server;
use HTTP::Haul;
my $server = t::Server->start(sub { kill USR1 => getppid; return sub { 1 } });
$SIG{USR1} = sub { die "stop\n" };
my $response = eval { HTTP::Haul->new(timeout => 30)->get($server->url('/')) } || { status => 'none' };
print $response->{status};
END
{
    local $ENV{PERL_SIGNALS} = 'unsafe';
    open my $out, '-|', $^X, (map { "-I$_" } @INC), '-e', $program or die $!;
    is(readline $out, '599', 'handler that dies is 599 with PERL_SIGNALS=unsafe');
}

SKIP: {
    eval { require LWP::UserAgent; require LWP::Protocol::haul; 1 } or skip 'LWP is not installed', 2;
    $handle->(sub { die "stop\n" });
    my $ua = LWP::UserAgent->new;
    like($ua->get($server->url('/signal'))->content, qr/\Astop/, 'immediate handler that dies ends a request of LWP');
    my $streamed = $ua->get($server->url('/signal'), ':content_cb' => sub { });
    like($streamed->content, qr/\Astop/, 'immediate handler that dies ends a streamed request of LWP');
}
done_testing;
