#!/usr/bin/perl
# Logs in by the form of a site, and prints a page behind it. The site answers the form with a 302;
# WWW::Mechanize follows it with the cookie, and haul makes the requests.
#
#   SITE_USER=me SITE_PASSWORD=secret perl login.pl http://127.0.0.1:8000/form http://127.0.0.1:8000/inside
use strict;
use warnings;
use LWP::Protocol::haul;
use WWW::Mechanize;

my ($form, $page) = @ARGV;
defined $page or die "usage: login.pl FORM-URL PAGE-URL\n";
my $mech = WWW::Mechanize->new(autocheck => 1, keep_alive => 4);
$mech->get($form);
$mech->submit_form(with_fields => { user => $ENV{SITE_USER}, password => $ENV{SITE_PASSWORD} });
my $redirect = $mech->response->previous;
die "the login was refused\n" unless $redirect && $redirect->code == 302;
print 'after the login: ', $mech->uri->path, "\n";
$mech->get($page);
print $mech->content, "\n";
