// Peers measures other lock libraries beside this one, on the same servers, in
// the same run, with the same workloads: redsync over three Redis clients,
// rueidislock, bsm/redislock, and etcd and ZooKeeper where they are installed.
//
//	cd bench/peers && go run . --html peers.html
//
// A library that fails, gets stuck or leaves something behind is reported so,
// with its mishap.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/bench"
)

func main() {
	var p peers
	flag.BoolVar(&p.quick, "quick", false, "one short round each")
	flag.StringVar(&p.only, "only", "", "only these `workloads`, separated by commas, such as pair/64 or handoff")
	flag.StringVar(&p.json, "json", "", "write everything measured to this `file`")
	flag.StringVar(&p.html, "html", "", "write a page with pictures to this `file`")
	flag.StringVar(&p.root, "zookeeper-root", "", "where Debian's zookeeper package was unpacked, if it is not installed")
	flag.BoolVar(&p.anchors, "anchors", false, "measure what the ZooKeeper paper measured, and for how long nobody succeeds when a server dies")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := p.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

type peers struct {
	quick, anchors   bool
	only, json, html string
	root             string
	others           []bench.Subject // other servers than Redis
}

func (p *peers) run(ctx context.Context) error {
	redis.SetLogger(quiet{})
	if p.anchors {
		return p.measureAnchors(ctx, os.Stdout)
	}
	masters, err := bench.Real(5)
	if err != nil {
		return err
	}
	defer masters.Close()
	defer p.startOthers()()
	workloads, err := p.workloads()
	if err != nil {
		return err
	}
	plan := bench.Plan{Masters: masters, Workloads: workloads}
	plan.Progress = func(done int, what string) { fmt.Fprintf(os.Stderr, "%3d of %d  %s\n", done, plan.Trials(), what) }
	report, err := plan.Run(ctx)
	if err != nil {
		return err
	}
	report.WriteText(os.Stdout)
	return errors.Join(write(p.json, report.WriteJSON), write(p.html, report.WriteHTML))
}

// startOthers starts the installed servers, names the others, and returns how to
// end them.
func (p *peers) startOthers() (stop func()) {
	var ends []func()
	if e, err := startEtcd(3); err != nil {
		fmt.Println("etcd is absent:", err)
	} else {
		p.others, ends = append(p.others, e.subject()), append(ends, e.close)
	}
	if z, err := startZookeeper(p.root, 3); err != nil {
		fmt.Println("ZooKeeper is absent:", err)
	} else {
		p.others, ends = append(p.others, z.subject()), append(ends, z.close)
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

func (p *peers) workloads() ([]bench.Workload, error) {
	rounds, short, long, locks, pairs := 3, 300*time.Millisecond, time.Second, 10_000, 20_000
	if p.quick {
		rounds, short, long, locks, pairs = 1, 200*time.Millisecond, 400*time.Millisecond, 0, 5_000
	}
	quorums := []bench.Subject{
		bench.Redlock(5),
		redsyncOn(5, overRedigo, byDefault), redsyncOn(5, overRedigo, failFast),
		redsyncOn(5, overGoRedis, byDefault), redsyncOn(5, overGoRedis, failFast),
		redsyncOn(5, overRueidis, byDefault), redsyncOn(5, overRueidis, failFast),
	}
	tunedOnes := []bench.Subject{redsyncOn(5, overTunedRedigo, tuned), redsyncOn(5, overTunedGoRedis, tuned)}
	singles := []bench.Subject{bench.Redlock(1), redisLock(), rueidisLock()}
	everybody := join(quorums, singles, p.others)

	all := []bench.Workload{
		bench.Pairs(1).With(rounds, short, join([]bench.Subject{bench.Redigo()}, everybody)...),
		bench.Pairs(64).With(rounds, short, join([]bench.Subject{bench.RedigoPool(64)}, everybody)...),
		bench.Handoff(bench.RelaxedHandoff, "8 clients pass a lock on, holding it for 1 ms, then idle for 5 ms", bench.Relaxed).
			With(rounds, long, join(quorums, tunedOnes, singles, p.others)...),
		bench.Orphans(pairs).With(1, 0, quorums...),
		bench.Degraded(1).With(1, 1200*time.Millisecond, join(quorums, tunedOnes)...),
	}
	if locks > 0 {
		all = append(all, bench.Held(locks).With(1, bench.RenewalPeriod, bench.Redlock(5), renewing(redsyncOn(5, overBoundedRedigo, byDefault)), rueidisLock()))
	}
	if p.only == "" {
		return all, nil
	}
	return bench.Only(strings.Split(p.only, ","), all)
}

func join(lists ...[]bench.Subject) (all []bench.Subject) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func write(name string, to func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(to(f), f.Close())
}

// quiet keeps go-redis from reporting every broken connection.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}
