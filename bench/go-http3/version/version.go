// Package version tells which quic-go the programs of this module are built with.
package version

import "runtime/debug"

// QuicGo returns the name and version of quic-go.
func QuicGo() string {
	const module = "github.com/quic-go/quic-go"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dependency := range info.Deps {
			if dependency.Path == module {
				return "quic-go " + dependency.Version
			}
		}
	}
	return "quic-go"
}
