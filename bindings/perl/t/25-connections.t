use strict;
use warnings;
use lib '.';
use Test::More;
use File::Temp qw(tempdir);
use IO::Socket::INET;
use IO::Socket::UNIX;
use t::Server;
use HTTP::Haul;

delete @ENV{qw(http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY no_proxy)};

my @children;
END { local $?; for my $child (@children) { kill 'KILL', $child; waitpid $child, 0 } }

# Runs code in a child process.
sub child {
    my ($code) = @_;
    my $pid = fork;
    defined $pid or die $!;
    if (!$pid) {
        $code->();
        require POSIX;
        POSIX::_exit(0);
    }
    push @children, $pid;
}

# A Unix socket.
my $path = tempdir(CLEANUP => 1) . '/socket';
my $listener = IO::Socket::UNIX->new(Listen => 5, Local => $path) or die $!;
child(sub {
    while (my $peer = $listener->accept) {
        my ($head) = ('');
        while ($head !~ /\r\n\r\n/) { sysread $peer, $head, 4096, length $head or last }
        my ($host) = $head =~ /^Host: (.*?)\r$/m;
        print {$peer} "HTTP/1.1 200 OK\r\nContent-Length: " . length($host) . "\r\nConnection: close\r\n\r\n$host";
        close $peer;
    }
});
my $http = HTTP::Haul->new(unix_socket => $path);
is($http->get('http://docker/info')->{content}, 'docker', 'unix_socket takes all requests');
is(($http->batch(['http://other/']))[0]{content}, 'other', 'unix_socket takes those of a batch');
# The name of a file is bytes, as for Perl's open.
my $directory = tempdir(CLEANUP => 1);
for my $name ("m\xc3\xbc", "m\xfc", "m\x{263a}") {
    my $link = "$directory/$name";
    symlink $path, $link or die $!;
    is(HTTP::Haul->new(unix_socket => $link)->get('http://docker/info')->{content}, 'docker', 'unix_socket has a name beyond ASCII');
}
$http->unix_socket("$path-missing");
is($http->get('http://docker/info')->{status}, 599, 'missing socket is 599');

# A name server that answers each question for an IPv4 address with 127.0.0.1.
my $names = IO::Socket::INET->new(Proto => 'udp', LocalAddr => '127.0.0.1') or die $!;
child(sub {
    while (my $peer = $names->recv(my $query, 4096)) {
        my $end = index($query, "\0", 12) + 5;
        my $is_a = substr($query, $end - 4, 2) eq "\0\1";
        my $answer = $is_a ? "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x7f\0\0\1" : '';
        $names->send(substr($query, 0, 2) . "\x81\x80\0\1" . pack('n', $is_a ? 1 : 0) . "\0\0\0\0" . substr($query, 12, $end - 12) . $answer, 0, $peer);
    }
});
my $server = t::Server->start(sub { [200, {}, $_[0]{headers}{host}] });
my $url = 'http://named.example:' . $server->port . '/';
for my $given ('127.0.0.1:' . $names->sockport, ['127.0.0.1:' . $names->sockport]) {
    is(HTTP::Haul->new(dns_servers => $given)->get($url)->{content}, 'named.example:' . $server->port, 'name server is asked');
}
ok(!eval { HTTP::Haul->new(dns_servers => 'no server')->get($url); 1 } && $@ =~ /not a name server/, 'malformed name server dies');
done_testing;
