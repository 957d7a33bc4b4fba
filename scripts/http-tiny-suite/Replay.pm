package Replay;

# What HTTP::Tiny's tests think of as sockets: pairs of files, one that gets the request and one that the response is read
# from. Here a child process plays them on a listening socket, a connection a pair. The tests' own Util module is loaded as it
# is; the functions of it that reach into HTTP::Tiny are replaced.

use strict;
use warnings;

use IO::Handle ();
use IO::Socket::INET ();

my ($listener, $child, $through, @pairs, $seen);

sub _listener {
    return $listener ||= IO::Socket::INET->new(Listen => 16, LocalAddr => '127.0.0.1', Proto => 'tcp') || die "listen: $!";
}

sub _place { return '127.0.0.1:' . _listener()->sockport }

# A proxy of the same credentials, here.
sub as_proxy {
    my ($url) = @_;
    my ($auth) = $url =~ m{//([^/\@]*\@)};
    return 'http://' . (defined $auth ? $auth : '') . _place() . '/';
}

# Everything of a request, as it came.
sub _request {
    my ($socket) = @_;
    my $text = '';
    my $more = sub { sysread $socket, $text, 65536, length $text };
    until ($text =~ /\r\n\r\n/) { $more->() or return $text }
    my $head = index($text, "\r\n\r\n") + 4;
    if (substr($text, 0, $head) =~ /^Content-Length: *(\d+)/mi) {
        while (length $text < $head + $1) { $more->() or last }
    }
    elsif (substr($text, 0, $head) =~ /^Transfer-Encoding: *chunked/mi) {
        until (substr($text, $head - 2) =~ /\r\n0\r\n(?:[^\r\n]+\r\n)*\r\n\z/) { $more->() or last }
    }
    return $text;
}

sub _serve {
    for my $pair (@pairs) {
        my $socket = _listener()->accept or last;
        my ($to, $from) = @$pair;
        my $request = _request($socket);
        print {$to} $request;
        $to->flush;
        local $/;
        seek $from, 0, 0;
        my $response = <$from>;
        for (my $at = 0; $at < length $response; ) {
            $at += syswrite $socket, $response, length($response) - $at, $at or last;
        }
        close $socket;
    }
    return;
}

# The place to connect to; the child answers as many connections as there are pairs.
sub begin {
    ($through) = @_;
    end();
    _listener();
    $child = fork;
    defined $child or die "fork: $!";
    if (!$child) {
        local $SIG{ALRM} = 'DEFAULT';
        local $SIG{PIPE} = 'IGNORE';
        alarm 60;
        _serve();
        require POSIX;
        POSIX::_exit(0);
    }
    return _place();
}

# A request that was refused leaves the child waiting.
sub end {
    return unless $child;
    kill 'KILL', $child;
    waitpid $child, 0;
    undef $child;
    return;
}

# Where the last request was for: as it says itself, which is what the server knows.
sub _where {
    my $to = @pairs ? $pairs[0][0] : return;
    seek $to, 0, 0;
    local $/;
    my $request = <$to>;
    return unless defined $request;
    if ($request =~ /\A\S+ http:/ && defined $through) {
        my ($host, $port) = $through =~ m{//(?:[^/\@]*\@)?([^/:]+)(?::(\d+))?};
        return ($host, $port || 80);
    }
    my ($host, $port) = $request =~ /^Host: *([^:\r\n]+)(?::(\d+))?/mi;
    # The tests take an empty port for 80.
    return ($host, $port || 80);
}

# What HTTP does not tell apart: the case of fields' names and of the digits of a chunk's size.
sub _alike {
    my ($text) = @_;
    my ($head, $body) = split /\r\n\r\n/, $text, 2;
    return $text unless defined $body;
    $head =~ s/^([^\s:]+):/\L$1:/mg;
    $body =~ s/^([0-9A-Fa-f]+)\r$/\U$1\r/mg if $head =~ /^transfer-encoding: chunked/m;
    $body =~ s/^([A-Za-z-]+):/\L$1:/mg;
    return "$head\r\n\r\n$body";
}

# The tests say `use lib 't'` and load it themselves: by then it is there.
{
    package Util;
    our @EXPORT_OK;
    my $file = 't/Util.pm';
    (my $loaded = do "./$file") or die "$file: ", $@ || $!;
    $INC{'Util.pm'} = $file;
    no warnings 'redefine';
    my $sort = \&sort_headers;
    *sort_headers = sub { return $sort->(Replay::_alike($_[0])) };
    *monkey_patch = sub { delete @ENV{ map { ($_, uc) } qw(http_proxy https_proxy all_proxy) } };
    *set_socket_source = sub { push @pairs, [@_] };
    *clear_socket_source = sub { @pairs = () };
    *connect_args = sub { return Replay::_where() };
}

END { end() }

1;
