# Responses that begin before the request is complete, and reasons for which a body ends early.
use strict;
use warnings;
use Test::More;
use Digest::MD5 qw(md5_hex);
use IO::Socket::INET;
use Socket qw(SOL_SOCKET SO_RCVBUF);
use Time::HiRes qw(sleep ualarm);

BEGIN {
    eval { require LWP::UserAgent; 1 } or plan(skip_all => 'LWP is not installed');
}
use LWP::Protocol::haul;

delete @ENV{qw(http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY no_proxy PERL_LWP_ENV_PROXY)};

my $listener = IO::Socket::INET->new(Listen => 8, LocalAddr => '127.0.0.1', ReuseAddr => 1) or die "cannot listen: $@";
# Most of a request waits in its sender.
setsockopt($listener, SOL_SOCKET, SO_RCVBUF, 8192) or die "SO_RCVBUF: $!";
my $url = 'http://127.0.0.1:' . $listener->sockport;

# The whole of a body, read behind its head.
sub content_of {
    my ($socket, $length) = @_;
    my $all = '';
    if (defined $length) {
        while (length $all < $length) { read($socket, $all, $length - length $all, length $all) or last }
        return $all;
    }
    while (defined(my $size = <$socket>)) {
        $size =~ s/\r\n\z//;
        my $left = hex $size;
        my $end = length($all) + $left;
        while (length $all < $end) { read($socket, $all, $end - length $all, length $all) or return $all }
        <$socket>;
        return $all if !$left;
    }
    return $all;
}

my $pid = fork;
die "cannot fork: $!" unless defined $pid;
if (!$pid) {
    $SIG{PIPE} = 'IGNORE';
    alarm 120;
    while (my $socket = $listener->accept) {
        $socket->autoflush;
        binmode $socket;
        my ($length, $path);
        while (defined(my $line = <$socket>) ) {
            last if $line eq "\r\n";
            $path = $1 if $line =~ m{\A[A-Z]+ (\S+)};
            $length = $1 if $line =~ /\AContent-Length: ([0-9]+)/i;
        }
        if ($path eq '/stall') {
            print $socket "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc";
            sleep 2;
            next;
        }
        if ($path eq '/refuse') {
            print $socket "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno";
            1 while sysread $socket, my $rest, 65536;
            next;
        }
        print $socket "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n6\r\nhello \r\n";
        sleep 0.3;
        my $sum = md5_hex(content_of($socket, $length));
        printf $socket "%x\r\n%s\r\n0\r\n\r\n", length $sum, $sum;
    }
    require POSIX;
    POSIX::_exit(0);
}
close $listener;

my $ua = LWP::UserAgent->new(timeout => 20);
my $content = join '', map { sprintf "%07d\n", $_ } 1 .. 1_500_000;

# The body is looked at as it comes, so the reply is there when the head is.
sub post {
    my ($sent, @fields) = @_;
    my $got = '';
    my $request = HTTP::Request->new(POST => "$url/", [@fields], $sent);
    # What was the content's memory is used again.
    my $response = $ua->request($request, sub { $got .= $_[0]; my @others = map { 'x' x 10_000 } 1 .. 50; return });
    return ($response, $got);
}

my ($response, $got) = post($content);
is($response->code . " $got", '200 hello ' . md5_hex($content), 'string is sent whole after an early head');

for my $fields ([], ['Content-Length' => length $content]) {
    my $at = 0;
    ($response, $got) = post(sub { my $piece = substr $content, $at, 3_000_000; $at += length $piece; return $piece }, @$fields);
    is($response->code . " $got", '200 hello ' . md5_hex($content), 'callback content is sent whole after an early head');
    is($response->header('X-Died'), undef, 'X-Died is not set');
}

my $at = 0;
($response) = post(sub { die "no more\n" if $at++ > 300; return 'x' x 30_000 });
like($response->header('X-Died') || $response->status_line, qr/no more/, 'callback that dies sets X-Died');

$response = $ua->get("$url/", 'X-A' => "a\0b", ':content_cb' => sub { });
is($response->code, 500, 'NUL in a field is 500');
like($response->status_line, qr/NUL/, 'message names NUL');

{
    local $SIG{ALRM} = sub { die "alarm\n" };
    ualarm 400_000;
    $response = $ua->get("$url/stall");
    ualarm 0;
}
is(join('|', $response->code, $response->content, $response->header('X-Died')), '200|abc|alarm',
    'signal handler that dies keeps the received body');

for my $take (undef, sub { }) {
    local $SIG{ALRM} = sub { die "nobody looked for the answer\n" };
    alarm 30;
    $response = $ua->request(HTTP::Request->new(PUT => "$url/refuse", [], sub { sleep 0.02; return 'a piece' }), $take);
    alarm 0;
    is($response->code, 401, 'early 401 ends a slow content callback');
}

kill TERM => $pid;
waitpid $pid, 0;
done_testing;
