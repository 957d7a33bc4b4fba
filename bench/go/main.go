// Command gofetch fetches a list of URLs with net/http and prints the pages that it gets, in the order in which they arrive. It is a
// peer in the jobs "hosts" and "adapt" of the bench, written as the documentation of net/http suggests for such a program: one client,
// one transport, and a number of goroutines that take URLs from a channel. A URL that fails is passed over.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"sync"
	"time"
)

func main() {
	list := flag.String("list", "", "file with the URLs, one a line")
	parallel := flag.Int("parallel", 300, "number of URLs at a time")
	limit := flag.Duration("max-time", 0, "maximum time of each URL; 0 is none")
	nameServer := flag.String("dns-server", "", "address and port of the name server (default: the system's)")
	cacert := flag.String("cacert", "", "file with the CA certificates to trust (default: the system's)")
	version := flag.Bool("version", false, "print the version of Go")
	flag.Parse()
	if *version {
		fmt.Println(runtime.Version())
		return
	}
	if err := run(*list, *parallel, *limit, *nameServer, *cacert); err != nil {
		fmt.Fprintln(os.Stderr, "gofetch:", err)
		os.Exit(1)
	}
}

func run(list string, parallel int, limit time.Duration, nameServer, cacert string) error {
	transport, err := newTransport(nameServer, cacert)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: transport, Timeout: limit}
	file, err := os.Open(list)
	if err != nil {
		return err
	}
	defer file.Close()

	urls := make(chan string)
	output := bufio.NewWriterSize(os.Stdout, 64<<10)
	var lock sync.Mutex
	var group sync.WaitGroup
	for i := 0; i < parallel; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for url := range urls {
				page, err := get(client, url)
				if err != nil {
					continue
				}
				lock.Lock()
				output.Write(page)
				lock.Unlock()
			}
		}()
	}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		urls <- lines.Text()
	}
	close(urls)
	group.Wait()
	if err := output.Flush(); err != nil {
		return err
	}
	return lines.Err()
}

// newTransport returns a transport that keeps every connection that the server keeps, as a program does that comes back to its hosts.
func newTransport(nameServer, cacert string) (*http.Transport, error) {
	dialer := &net.Dialer{}
	if nameServer != "" {
		dialer.Resolver = &net.Resolver{
			PreferGo: true,
			Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, nameServer)
			},
		}
	}
	transport := &http.Transport{DialContext: dialer.DialContext}
	if cacert != "" {
		text, err := os.ReadFile(cacert)
		if err != nil {
			return nil, err
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s: no certificate", cacert)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	}
	return transport, nil
}

func get(client *http.Client, url string) ([]byte, error) {
	response, err := client.Get(url)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", response.StatusCode)
	}
	return page, nil
}
