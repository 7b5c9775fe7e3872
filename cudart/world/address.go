// Where the ranks meet: the host and port of rank 0's store, and which addresses stand for them on this machine.

package world

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"
)

// lookupTime is how long a name server may take to say what the host of the rendezvous is on this machine.
const lookupTime = 5 * time.Second

// defaultPort is where the ranks meet if only a host is known.
const defaultPort = "29400"

// mostPort is the highest port there is.
const mostPort = 65535

// Jobs meet at ownPorts ports from firstOwnPort on, if nobody says where. Systems do not give these to outgoing connections, which could
// take one before rank 0 listens there.
const firstOwnPort, ownPorts = 20000, 12000

// withPort completes a rendezvous: a host, HOST:PORT, or an IPv6 address with or without brackets.
func withPort(rendezvous string) (string, error) {
	host, port, err := net.SplitHostPort(rendezvous)
	if alone := hostAlone(rendezvous); err != nil && alone != "" {
		host, port, err = alone, defaultPort, nil
	}
	number, wrong := strconv.Atoi(port)
	switch {
	case err != nil:
		return "", fmt.Errorf("the ranks cannot meet at %q: want HOST:PORT, with an IPv6 address in brackets", rendezvous)
	case host == "":
		return "", fmt.Errorf("the ranks cannot meet at %q, which names no host: want HOST:PORT, with the host of rank 0", rendezvous)
	case wrong != nil || number < 1 || number > mostPort:
		return "", fmt.Errorf("the ranks cannot meet at %q: want HOST:PORT, with a port from 1 to %d", rendezvous, mostPort)
	}
	return net.JoinHostPort(host, port), nil
}

// hostAlone is the host of a rendezvous that has no port, or "".
func hostAlone(text string) string {
	if inside, ok := strings.CutPrefix(strings.TrimSuffix(text, "]"), "["); ok && "["+inside+"]" == text && net.ParseIP(inside) != nil {
		return inside
	}
	if net.ParseIP(text) != nil || !strings.ContainsAny(text, ":[]") {
		return text
	}
	return ""
}

// joined puts a launcher's host and port together.
func joined(host, port string) string {
	if port == "" {
		port = defaultPort
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), port)
}

// jobPort is a port that all ranks of a job find without talking, another one for most other jobs.
func jobPort(job string) string {
	h := uint32(2166136261)
	for _, b := range []byte(job) {
		h = (h ^ uint32(b)) * 16777619
	}
	return strconv.Itoa(firstOwnPort + int(h%ownPorts))
}

// FreeAddress is an address of this machine where nobody listens now, for ranks that are all on it.
func FreeAddress() (string, error) {
	const attempts = 100
	for range attempts {
		at := net.JoinHostPort("127.0.0.1", strconv.Itoa(firstOwnPort+rand.IntN(ownPorts)))
		if l, err := net.Listen("tcp", at); err == nil {
			return at, l.Close()
		}
	}
	return "", fmt.Errorf("found no free port among %d to %d", firstOwnPort, firstOwnPort+ownPorts-1)
}

// meeting is what a process knows of the place where the ranks meet.
type meeting struct {
	host string
	// loopback is the address that host has here if only this machine reaches it, or else "".
	loopback string
	// shared says that ranks of other machines may come, who know the host by another address than this machine, if that has a loopback
	// address for its own name.
	shared bool
	// addresses are those of the host, if they are not loopback addresses.
	addresses []string
}

// meetingAt looks the host of the rendezvous up.
func meetingAt(ctx context.Context, rendezvous, secret string) meeting {
	m := meeting{host: hostOf(rendezvous)}
	m.loopback, m.addresses = addressesOf(ctx, m.host)
	itself := m.host == "localhost" || net.ParseIP(m.host) != nil
	m.shared = secret != "" && (m.loopback == "" || !itself)
	return m
}

// addressesOf returns the loopback address that a host means, IPv4 if it has both, or else its addresses.
func addressesOf(ctx context.Context, host string) (loopback string, all []string) {
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	if err != nil {
		return "", nil
	}
	for _, a := range addresses {
		if !a.IP.IsLoopback() {
			all = append(all, a.String())
		} else if loopback == "" || a.IP.To4() != nil && strings.Contains(loopback, ":") {
			loopback = a.IP.String()
		}
	}
	if len(all) > 0 {
		return "", all
	}
	return loopback, nil
}

// listen opens the store's port, the first that is free, at the address of the rendezvous. Only if this machine does not have that address
// itself (it has a loopback address for its own name, or another machine passes connections on) it listens on all of its addresses. It returns where
// rank 0 itself reaches the store.
func (m meeting) listen(ports []string) (l net.Listener, own string, err error) {
	type place struct{ on, from string }
	places := []place{{m.loopback, m.loopback}}
	if m.shared {
		places = nil
		for _, a := range m.addresses {
			places = append(places, place{a, a})
		}
		places = append(places, place{"", "127.0.0.1"})
	}
	var first error
	for _, at := range places {
		missing := false
		for _, candidate := range ports {
			l, err := net.Listen("tcp", net.JoinHostPort(at.on, candidate))
			if err == nil {
				_, port, _ := net.SplitHostPort(l.Addr().String())
				return l, net.JoinHostPort(at.from, port), nil
			}
			missing = missing || errors.Is(err, noSuchAddress)
			if first == nil && !missing {
				first = err
			}
		}
		if !missing { // its ports are taken, and others would be no meeting place
			break
		}
	}
	return nil, "", first
}

// listenForRanks opens a port for the other ranks, given the address from which this rank reaches the store. It returns where they find it: on
// rank 0's machine, that is the host of the rendezvous, because ranks of other machines cannot use the loopback address.
func (m meeting) listenForRanks(own string) (l net.Listener, at string, err error) {
	here := net.ParseIP(own)
	nearStore := m.shared && here != nil && here.IsLoopback()
	if nearStore {
		own = ""
	}
	if l, err = net.Listen("tcp", net.JoinHostPort(own, "0")); err != nil {
		return nil, "", err
	}
	at = l.Addr().String()
	if nearStore {
		_, port, _ := net.SplitHostPort(at)
		at = net.JoinHostPort(m.host, port)
	}
	return l, at, nil
}

// hostOf is the host part of an address.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
