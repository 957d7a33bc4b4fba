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
    kill $request->{target} =~ m{\A/signal/(\w+)} ? $1 : 'USR1', getppid;
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
SKIP: {
    skip 'no list of descriptors here', 1 unless $open;
    cmp_ok($descriptors->(), '<=', $open + 1, 'no connection of an ended request stays open');
}
is($http->get($server->url('/page'))->{content}, '/page', 'object works after that');
my $action = sub {
    my $current = POSIX::SigAction->new;
    POSIX::sigaction(POSIX::SIGUSR1(), undef, $current) or die $!;
    return $current;
};
ok(!$action->()->safe, 'handler is immediate again after the request');

# Calls code in each kind of callback.
my $in_callbacks = sub {
    my ($code) = @_;
    return { content => sub { $code->(); return '' }, data_callback => $code };
};
my @immediate;
$http->post($server->url('/page'), $in_callbacks->(sub { push @immediate, !$action->()->safe }));
is("@immediate", '1 1', 'handler is immediate in a callback');
{
    my $is_safe;
    local $SIG{USR2} = sub { $is_safe = $action->()->safe; die "stop\n" };
    $http->get($server->url('/signal/USR2'));
    ok(defined $is_safe && !$is_safe, 'handler is immediate in another handler');
}

ok(!eval { $http->each([$server->url('/signal')], sub { }); 1 }, 'immediate handler that dies ends each');
is($@, "stop\n", 'message of each is that of the handler');

# A callback that sets another handler, or another action with the same handler.
$http->post($server->url('/page'), { content => sub { $handle->('IGNORE'); return '' } });
is($action->()->handler, 'IGNORE', 'handler of a callback stays');
my $stop = sub { die "stop\n" };
$handle->($stop);
$http->post($server->url('/page'), {
    content => sub {
        my $other = POSIX::SigAction->new($stop, POSIX::SigSet->new(POSIX::SIGHUP()), POSIX::SA_RESTART());
        $other->safe(1);
        POSIX::sigaction(POSIX::SIGUSR1(), $other) or die $!;
        return '';
    },
});
my $set = $action->();
ok($set->safe, 'safe handler of a callback stays safe');
ok($set->flags & POSIX::SA_RESTART(), 'flags of a callback stay');
ok($set->mask->ismember(POSIX::SIGHUP()), 'mask of a callback stays');
$SIG{USR1} = 'DEFAULT';
my $response = eval { $http->post($server->url('/signal'), { content => sub { $handle->($stop); return '' } }) } || { status => 'none' };
is($response->{status}, 599, 'immediate handler of a callback that dies is 599');

my $with_info = sub {
    my ($code) = @_;
    POSIX::sigaction(POSIX::SIGUSR1(), POSIX::SigAction->new($code, POSIX::SigSet->new, POSIX::SA_SIGINFO())) or die $!;
};
$with_info->(sub { die defined $_[1] ? "info\n" : "no info\n" });
$response = eval { $http->get($server->url('/signal')) } || { status => 'none', content => $@ };
is("$response->{status} $response->{content}", "599 no info\n", 'immediate handler with SA_SIGINFO gets no info while libhaul works');
my $info;
$with_info->(sub { $info = $_[1] });
kill USR1 => $$;
is(ref $info, 'HASH', 'it gets the info after the request');
$SIG{USR1} = 'DEFAULT';

# More handlers than programs have. The last by number dies.
my @names = qw(HUP INT QUIT USR1 USR2 ALRM TERM CONT TTIN TTOU);
for my $name (@names) {
    my $number = POSIX->can("SIG$name")->();
    POSIX::sigaction($number, POSIX::SigAction->new($name eq 'TTOU' ? $stop : sub { })) or die $!;
}
$response = eval { $http->get($server->url('/signal/TTOU')) } || { status => 'none' };
is($response->{status}, 599, 'immediate handler that dies is 599 beside nine others');
$SIG{$_} = 'DEFAULT' for @names;

# Runs a program and returns its first line.
my $first_line_of = sub {
    open my $out, '-|', $^X, (map { "-I$_" } @INC), '-e', $_[0] or die $!;
    return scalar readline $out;
};
my $program = <<'END';
use t::Server;
use HTTP::Haul;
use POSIX ();
my $server = t::Server->start(sub { return [200, {}, 'page'] });
POSIX::sigaction(POSIX::SIGUSR1(), POSIX::SigAction->new(sub { die "stop\n" }));
END {
    HTTP::Haul->new->get($server->url('/'));
    POSIX::sigaction(POSIX::SIGUSR1(), undef, my $current = POSIX::SigAction->new);
    print $current->safe ? 'deferred' : 'immediate';
}
HTTP::Haul->new->get($server->url('/'), { data_callback => sub { exit } });
END
is($first_line_of->($program), 'immediate', 'handler is immediate after exit in a callback');

$program = <<'END';
use t::Server;
use HTTP::Haul;
my $server = t::Server->start(sub { kill USR1 => getppid; return sub { 1 } });
$SIG{USR1} = sub { die "stop\n" };
my $response = eval { HTTP::Haul->new(timeout => 30)->get($server->url('/')) } || { status => 'none' };
print $response->{status};
END
{
    local $ENV{PERL_SIGNALS} = 'unsafe';
    is($first_line_of->($program), '599', 'handler that dies is 599 with PERL_SIGNALS=unsafe');
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
