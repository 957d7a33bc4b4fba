// Command quicgo-client fetches URLs over HTTP/3 with quic-go: a peer in the job "h3" of the bench, written as the documentation of
// quic-go suggests for such a program, with one transport and a number of goroutines that take URLs from a channel.
//
//	quicgo-client -cacert ca.pem URL                          the body to standard output
//	quicgo-client -cacert ca.pem -discard URL                 the number of its bytes
//	quicgo-client -cacert ca.pem -parallel 50 -list FILE      the bodies of many URLs, in any order
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"

	"github.com/quic-go/quic-go/http3"
	"haul.example/bench/http3/version"
)

func main() {
	cacert := flag.String("cacert", "", "file with the CA certificates to trust")
	list := flag.String("list", "", "file with URLs, one a line")
	parallel := flag.Int("parallel", 50, "number of URLs at a time")
	discard := flag.Bool("discard", false, "print the number of bytes instead of the bodies")
	showVersion := flag.Bool("version", false, "print the version of quic-go")
	flag.Parse()
	if *showVersion {
		fmt.Println(version.QuicGo())
		return
	}
	if err := run(*cacert, *list, flag.Args(), *parallel, *discard); err != nil {
		fmt.Fprintln(os.Stderr, "quicgo-client:", err)
		os.Exit(1)
	}
}

func run(cacert, list string, urls []string, parallel int, discard bool) error {
	roots, err := authorities(cacert)
	if err != nil {
		return err
	}
	transport := &http3.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.Close()
	client := &http.Client{Transport: transport}
	output := bufio.NewWriterSize(os.Stdout, 64<<10)
	if list == "" {
		err = fetchOne(client, urls, output, discard)
	} else {
		err = fetchMany(client, list, output, parallel, discard)
	}
	return errors.Join(err, output.Flush())
}

func authorities(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: no certificate", file)
	}
	return roots, nil
}

func fetchOne(client *http.Client, urls []string, output io.Writer, discard bool) error {
	if len(urls) != 1 {
		return errors.New("one URL is needed")
	}
	body := output
	if discard {
		body = io.Discard
	}
	length, err := get(client, urls[0], body)
	if err == nil && discard {
		_, err = fmt.Fprintln(output, length)
	}
	return err
}

func fetchMany(client *http.Client, list string, output io.Writer, parallel int, discard bool) error {
	file, err := os.Open(list)
	if err != nil {
		return err
	}
	defer file.Close()
	urls := make(chan string)
	var lock sync.Mutex
	var group sync.WaitGroup
	var total int64
	var failures []error
	for range parallel {
		group.Add(1)
		go func() {
			defer group.Done()
			for url := range urls {
				var page bytes.Buffer
				body := io.Writer(&page)
				if discard {
					body = io.Discard
				}
				length, err := get(client, url, body)
				lock.Lock()
				total += length
				if err == nil {
					_, err = page.WriteTo(output)
				}
				if err != nil {
					failures = append(failures, err)
				}
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
	if discard {
		fmt.Fprintln(output, total)
	}
	return errors.Join(append(failures, lines.Err())...)
}

func get(client *http.Client, url string, body io.Writer) (int64, error) {
	response, err := client.Get(url)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	length, err := io.Copy(body, response.Body)
	if err != nil {
		return length, err
	}
	if response.StatusCode != http.StatusOK {
		return length, fmt.Errorf("%s: status %d", url, response.StatusCode)
	}
	return length, nil
}
