package HTTP::Haul::Mirror;

# The method mirror of HTTP::Haul: keeps a file as new as a URL.

use strict;
use warnings;

our $VERSION = '0.1.0';

sub _croak { require Carp; Carp::croak(@_) }

sub mirror {
    my ($http, $url, $file, $args) = @_;
    my %args = %{ $args || {} };
    my %fields = %{ $args{headers} || {} };
    my ($had) = grep { lc $_ eq 'if-modified-since' } keys %fields;
    if (!$had && -e $file and my $time = (stat _)[9]) {
        $fields{'If-Modified-Since'} = _http_date($time);
    }
    require Fcntl;
    my ($partial, $out);
    for my $try (1 .. 100) {
        $partial = sprintf '%s.%d.%06d.part', $file, $$, int rand 1e6;
        last if sysopen $out, $partial, Fcntl::O_CREAT() | Fcntl::O_EXCL() | Fcntl::O_WRONLY();
        undef $out;
        last unless $!{EEXIST};
    }
    _croak("Error: Could not create temporary file $partial for downloading: $!\n") unless $out;
    binmode $out;
    my $response = eval {
        $http->request('GET', $url, {
            %args,
            headers       => \%fields,
            data_callback => sub { print {$out} $_[0] or die "Error writing $partial: $!\n" },
        });
    };
    my $error = $@;
    my $closed = close $out;
    my $why = "$!";
    if ($response && $response->{success} && $closed) {
        if (rename $partial, $file) {
            my $modified = $response->{headers}{'last-modified'};
            my $time = defined $modified && !ref $modified ? _http_time($modified) : undef;
            utime $time, $time, $file if defined $time;
            return $response;
        }
        $why = "$!";
        unlink $partial;
        _croak("Error replacing $file with $partial: $why\n");
    }
    unlink $partial;
    die $error unless $response;
    _croak("Error: Caught error closing temporary file $partial: $why\n") unless $closed;
    $response->{success} ||= $response->{status} == 304;
    return $response;
}

my @days = qw(Sun Mon Tue Wed Thu Fri Sat);
my @months = qw(Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec);
my %month = map { $months[$_] => $_ } 0 .. 11;

sub _http_date {
    my ($second, $minute, $hour, $day, $month, $year, $weekday) = gmtime $_[0];
    return sprintf '%s, %02d %s %04d %02d:%02d:%02d GMT', $days[$weekday], $day, $months[$month], $year + 1900, $hour, $minute, $second;
}

# The three forms of RFC 9110 section 5.6.7.
sub _http_time {
    my ($text) = @_;
    my ($day, $month, $year, $hour, $minute, $second);
    if ($text =~ /\A[A-Z][a-z]+, +(\d{1,2})[ -]([A-Z][a-z]{2})[ -](\d{2}|\d{4}) +(\d\d):(\d\d):(\d\d) +GMT\z/) {
        ($day, $month, $year, $hour, $minute, $second) = ($1, $2, $3, $4, $5, $6);
    }
    elsif ($text =~ /\A[A-Z][a-z]{2} +([A-Z][a-z]{2}) +(\d{1,2}) +(\d\d):(\d\d):(\d\d) +(\d{4})\z/) {
        ($month, $day, $hour, $minute, $second, $year) = ($1, $2, $3, $4, $5, $6);
    }
    return unless defined $day && exists $month{$month};
    $year += $year < 70 ? 2000 : 1900 if length $year == 2;
    require Time::Local;
    my $time = eval { local $SIG{__DIE__}; Time::Local::timegm($second, $minute, $hour, $day, $month{$month}, $year) };
    return defined $time && $time >= 0 ? $time : undef;
}

1;
