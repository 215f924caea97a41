package redlocktest

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// Size is how many masters there are.
const Size = 5

// nodeTimeout is the clients' default here. A busy machine that runs tests must
// not make a master that is well look silent.
const nodeTimeout = time.Second

// Masters are five Redis masters in memory. They are numbered from 0. Safe for
// concurrent use.
type Masters struct {
	t       testing.TB
	masters [Size]*master

	mu      sync.Mutex
	clients map[*redlock.Client][]*link
}

// New starts five masters and returns a client of them. Options are those of
// redlock.Dial; if none says otherwise, the client logs nothing and waits up to
// a second for a master that hangs.
func New(t testing.TB, opts ...redlock.Option) (*redlock.Client, *Masters) {
	t.Helper()
	ms := &Masters{t: t, clients: map[*redlock.Client][]*link{}}
	for i := range ms.masters {
		ms.masters[i] = newMaster(t, fmt.Sprintf("master-%d", i))
	}
	t.Cleanup(ms.end)
	return ms.Client(opts...), ms
}

// Client returns another client of the masters, as another process would have
// it. All clients must be given the same clock.
func (ms *Masters) Client(opts ...redlock.Option) *redlock.Client {
	ms.t.Helper()
	links := make([]*link, Size)
	nodes := make([]node.Node, Size)
	for i, m := range ms.masters {
		links[i] = newLink(m)
		nodes[i] = links[i]
	}
	opts = append([]redlock.Option{
		redlock.WithLogger(slog.New(slog.DiscardHandler)),
		redlock.WithNodeTimeout(nodeTimeout),
		seam.Option(seam.Seams{Guarded: true}).(redlock.Option),
	}, opts...)
	made, err := seam.NewClient(nodes, opts)
	if err != nil {
		ms.t.Fatalf("redlocktest: %v", err)
	}
	client := made.(*redlock.Client)
	settings := seam.SettingsOf(client)
	for _, l := range links {
		l.settings = settings
	}
	ms.mu.Lock()
	defer ms.mu.Unlock()
	ms.clients[client] = links
	return client
}

// Kill ends masters as a crash does: commands fail immediately, until Restart.
func (ms *Masters) Kill(masters ...int) {
	ms.t.Helper()
	ms.fault(dead, masters)
	for _, i := range masters {
		for _, l := range ms.links(i) {
			l.drop()
		}
	}
}

// Hang stops masters as SIGSTOP does: they take commands and run none of them,
// until Restart or Heal.
func (ms *Masters) Hang(masters ...int) { ms.fault(hung, masters) }

// Data says what a master remembers after Restart.
type Data int

const (
	Kept Data = iota // every key, as with appendfsync always
	Lost             // none: the master is quarantined until every lease that it may have granted has ended
)

// Restart lets a master run again that was killed or hangs, or restarts a running
// master.
func (ms *Masters) Restart(master int, data Data) {
	ms.t.Helper()
	m := ms.master(master)
	if data == Lost {
		m.forget()
		for _, l := range ms.links(master) {
			l.quarantine()
		}
	}
	ms.resume(master)
}

// Cut cuts a client off from masters, or from all of them if none is given.
// Others still reach them. Heal ends it.
func (ms *Masters) Cut(client *redlock.Client, masters ...int) {
	ms.t.Helper()
	if len(masters) == 0 {
		masters = all()
	}
	ms.mu.Lock()
	links, ok := ms.clients[client]
	ms.mu.Unlock()
	if !ok {
		ms.t.Fatalf("redlocktest: Cut: not a client of these masters")
	}
	for _, i := range masters {
		ms.master(i) // must exist
		links[i].cutOff()
	}
}

// LoseQuorum kills a majority of the masters.
func (ms *Masters) LoseQuorum() {
	ms.t.Helper()
	ms.Kill(all()[:quorum.Size(Size)]...)
}

// Heal ends every fault: masters that were killed or hang run again, with their
// keys, and clients that were cut off reach them.
func (ms *Masters) Heal() {
	for i := range ms.masters {
		for _, l := range ms.links(i) {
			l.reconnect()
		}
		ms.resume(i)
	}
}

// Expire deletes the lock of that name from every master, as if its TTL had
// passed. The holder finds out at its next renewal.
func (ms *Masters) Expire(name string) {
	for i, m := range ms.masters {
		for _, l := range ms.links(i) {
			m.delete(l.settings.Prefix + name)
		}
	}
}

// Holders returns what each master stores under a key, which is the name of a
// lock with the client's prefix before it: Lease.Value of the holder, or nothing
// where the lock is free.
func (ms *Masters) Holders(key string) [Size]string {
	var values [Size]string
	now := ms.now()
	for i, m := range ms.masters {
		values[i] = m.value(key, now)
	}
	return values
}

// now is the time by the clock that all clients have.
func (ms *Masters) now() time.Time { return ms.links(0)[0].now() }

func all() []int { return []int{0, 1, 2, 3, 4} }

func (ms *Masters) master(i int) *master {
	ms.t.Helper()
	if i < 0 || i >= Size {
		ms.t.Fatalf("redlocktest: there is no master %d: they are numbered from 0 to %d", i, Size-1)
	}
	return ms.masters[i]
}

// links returns the links of all clients to one master.
func (ms *Masters) links(i int) []*link {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	var links []*link
	for _, l := range ms.clients {
		links = append(links, l[i])
	}
	return links
}

func (ms *Masters) fault(f fault, masters []int) {
	ms.t.Helper()
	for _, i := range masters {
		ms.master(i).set(f)
	}
}

func (ms *Masters) resume(i int) {
	ms.masters[i].set(running)
	for _, l := range ms.links(i) {
		l.resume()
	}
}

// end closes the clients, and reports the keys that they left.
func (ms *Masters) end() {
	ms.t.Helper()
	ms.Heal() // releases owed to an absent master are not leases
	ms.giveBack()
	left := ms.left()
	for began := time.Now(); len(left) > 0 && time.Since(began) < releasing; left = ms.left() {
		time.Sleep(releasing / 100)
	}
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for client := range ms.clients {
		client.Close()
	}
	for _, m := range ms.masters {
		m.close()
	}
	for _, name := range left {
		ms.t.Errorf("redlocktest: the lock %q is still held when the test ends: something did not unlock it", name)
	}
}

// giveBack has the clients give back what they only have cached.
func (ms *Masters) giveBack() {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for client := range ms.clients {
		seam.GiveBack(client)
	}
}

// releasing is how long a lease that has just ended may take to be released: its end
// is announced first.
const releasing = time.Second

// left returns the locks that a quorum stores.
func (ms *Masters) left() []string {
	count, now := map[[2]string]int{}, ms.now()
	for _, m := range ms.masters {
		for key, value := range m.locks(now) {
			count[[2]string{key, value}]++
		}
	}
	var names []string
	for lock, masters := range count {
		if masters >= quorum.Size(Size) {
			names = append(names, lock[0])
		}
	}
	slices.Sort(names)
	return names
}
