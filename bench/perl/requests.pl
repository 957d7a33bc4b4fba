#!/usr/bin/perl
# Requests one at a time on a warm connection, for the job perl:
#
#   requests.pl WAY HOST PORT PATH COUNT [FORM]
#   requests.pl pages WAY LIST                   all URLs of a file, six at once
#
# WAY is a client, used as its manual recommends for such a program. Each returns the body as a string. FORM, which is already
# encoded, is posted. Prints the length of all bodies.
use strict;
use warnings;

# Finds the module beside this program without FindBin, whose loading would take longer than that of HTTP::Haul.
sub load_haul {
    my ($directory) = $0 =~ m{\A(.*)/}s or die "$0: run this program by its path\n";
    unshift @INC, map { "$directory/../../bindings/perl/blib/$_" } qw(arch lib);
    require HTTP::Haul;
}

if ($ARGV[0] eq 'pages') {
    my (undef, $way, $list) = @ARGV;
    open my $in, '<', $list or die "$list: $!";
    chomp(my @urls = <$in>);
    print pages($way, @urls), "\n";
    exit;
}

my ($way, $host, $port, $path, $count, $form) = @ARGV;
my $url = "http://$host:$port$path";
my $type = 'application/x-www-form-urlencoded';
my $count_only = 0;

my %ways = (
    haul => sub {
        my $http = HTTP::Haul->new(proxy => undef, http_proxy => undef);
        my %post = (content => $form, headers => { 'Content-Type' => $type });
        return defined $form ? sub { $http->post($url, \%post)->{content} } : sub { $http->get($url)->{content} };
    },
    tiny => sub {
        require HTTP::Tiny;
        my $http = HTTP::Tiny->new;
        my %post = (content => $form, headers => { 'Content-Type' => $type });
        return defined $form ? sub { $http->post($url, \%post)->{content} } : sub { $http->get($url)->{content} };
    },
    lwp => sub {
        require LWP::UserAgent;
        my $ua = LWP::UserAgent->new(keep_alive => 1);
        return defined $form
            ? sub { $ua->post($url, Content => $form, 'Content-Type' => $type)->content }
            : sub { $ua->get($url)->content };
    },
    curl => sub {
        require WWW::Curl::Easy;
        my $curl = WWW::Curl::Easy->new;
        my $body;
        $curl->setopt(WWW::Curl::Easy::CURLOPT_URL(), $url);
        $curl->setopt(WWW::Curl::Easy::CURLOPT_POSTFIELDS(), $form) if defined $form;
        return sub {
            $body = '';
            $curl->setopt(WWW::Curl::Easy::CURLOPT_WRITEDATA(), \$body);
            $curl->perform == 0 or die $curl->errbuf;
            return $body;
        };
    },
    # The bodies go to a file, and only their lengths count.
    'curl-file' => sub {
        require WWW::Curl::Easy;
        my $curl = WWW::Curl::Easy->new;
        open my $file, '>', '/dev/null' or die "/dev/null: $!";
        $curl->setopt(WWW::Curl::Easy::CURLOPT_URL(), $url);
        $curl->setopt(WWW::Curl::Easy::CURLOPT_WRITEDATA(), $file);
        return sub {
            $curl->perform == 0 or die $curl->errbuf;
            $count_only += $curl->getinfo(WWW::Curl::Easy::CURLINFO_SIZE_DOWNLOAD());
            return '';
        };
    },
    furl => sub {
        require Furl;
        my $furl = Furl->new(timeout => 60);
        my @type = ('Content-Type' => $type);
        return defined $form ? sub { $furl->post($url, \@type, $form)->content } : sub { $furl->get($url)->content };
    },
    hijk => sub {
        require Hijk;
        my %request = (host => $host, port => $port, path => $path);
        %request = (%request, method => 'POST', body => $form, head => ['Content-Type' => $type]) if defined $form;
        return sub { Hijk::request(\%request)->{body} };
    },
    mojo => sub {
        require Mojo::UserAgent;
        my $ua = Mojo::UserAgent->new;
        return defined $form
            ? sub { $ua->post($url, { 'Content-Type' => $type }, $form)->res->body }
            : sub { $ua->get($url)->res->body };
    },
);
if ($way =~ s/haul\z//) {
    load_haul();
    if ($way eq 'lwp+') {
        require LWP::Protocol::haul;
        $way = 'lwp';
    }
    else {
        $way = 'haul';
    }
}
my $call = ($ways{$way} or die "no way '$way'\n")->();
my $total = 0;
$total += length $call->() for 1 .. $count;
print $total + $count_only, "\n";

# Returns the length of all bodies. Each client fetches them six at a time, by its own means.
sub pages {
    my ($way, @urls) = @_;
    my $total = 0;
    my %ways = (
        haul => sub {
            load_haul();
            HTTP::Haul->new(proxy => undef, http_proxy => undef)->each(\@urls, sub { $total += length $_[0]{content} }, { per_host => 6 });
        },
        curl => sub {
            require WWW::Curl::Easy;
            require WWW::Curl::Multi;
            my $multi = WWW::Curl::Multi->new;
            my (%under_way, $number);
            my $begin = sub {
                my ($easy) = @_;
                my $url = shift @urls;
                return unless defined $url;
                my $body = '';
                $easy->setopt(WWW::Curl::Easy::CURLOPT_URL(), $url);
                $easy->setopt(WWW::Curl::Easy::CURLOPT_WRITEDATA(), \$body);
                $easy->setopt(WWW::Curl::Easy::CURLOPT_PRIVATE(), ++$number);
                $under_way{$number} = [$easy, \$body];
                $multi->add_handle($easy);
            };
            $begin->(WWW::Curl::Easy->new) for 1 .. 6;
            while (%under_way) {
                if ($multi->perform != keys %under_way) {
                    while (my ($done, $code) = $multi->info_read) {
                        last unless $done;
                        my ($easy, $body) = @{ delete $under_way{$done} };
                        $code == 0 or die $easy->errbuf;
                        $total += length $$body;
                        $begin->($easy);
                    }
                    next;
                }
                my @wait = ('', '', '');
                my @sets = $multi->fdset;
                for my $set (0 .. 2) { vec($wait[$set], $_, 1) = 1 for @{ $sets[$set] } }
                select $wait[0], $wait[1], $wait[2], 0.1;
            }
        },
        mojo => sub {
            require Mojo::UserAgent;
            require Mojo::IOLoop;
            my $ua = Mojo::UserAgent->new;
            my $left = @urls;
            my $next;
            $next = sub {
                my $url = shift @urls;
                return unless defined $url;
                $ua->get($url => sub {
                    my (undef, $tx) = @_;
                    $total += length $tx->res->body;
                    --$left ? $next->() : Mojo::IOLoop->stop;
                });
            };
            $next->() for 1 .. 6;
            Mojo::IOLoop->start;
        },
    );
    ($ways{$way} or die "no way '$way'\n")->();
    return $total;
}
