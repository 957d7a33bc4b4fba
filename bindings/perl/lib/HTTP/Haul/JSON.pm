package HTTP::Haul::JSON;

# Requests and responses in JSON: get_json and the other JSON methods of HTTP::Haul.

use strict;
use warnings;

our $VERSION = '0.1.0';

my $json;

sub _json {
    return $json ||= do {
        my ($class) = grep { eval "require $_; 1" } qw(Cpanel::JSON::XS JSON::XS JSON::PP);
        $class->new->utf8->allow_nonref->canonical;
    };
}

sub request {
    my ($http, $method, $url, $data, $args) = @_;
    my %fields = %{ $args ? $args->{headers} || {} : {} };
    my %has = map { lc($_) => 1 } keys %fields;
    $fields{'Accept'} = 'application/json' unless $has{accept};
    my %more;
    if ($data) {
        $fields{'Content-Type'} = 'application/json' unless $has{'content-type'};
        $more{content} = _json()->encode($$data);
    }
    my $response = $http->request($method, $url, { %{ $args || {} }, %more, headers => \%fields });
    if ($response->{status} != 599 && length(defined $response->{content} ? $response->{content} : '')) {
        my $type = $response->{headers}{'content-type'};
        $type = '' if !defined $type || ref $type;
        if ($type =~ m{\A\s*application/(?:[^;\s]+\+)?json\b}i) {
            $response->{json} = eval { _json()->decode($response->{content}) };
            $response->{json_error} = "$@" if $@;
        }
    }
    return $response;
}

1;
