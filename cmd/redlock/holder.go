package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/words"
	"github.com/quorumlock/quorumlock/redlock"
)

// holder describes who holds a lock.
func holder(h redlock.Holder) string {
	switch {
	case h.Permits > 0:
		return fmt.Sprintf("%d of %d permits free", h.Available, h.Permits)
	case h.Kind == "semaphore":
		return shared(h.Shares) + ", " + lasts(longest(h.Shares))
	case len(h.Shares) > 0:
		return "held by " + shared(h.Shares) + ", " + lasts(longest(h.Shares))
	}
	who := "by another library's client"
	if h.Client != "" {
		who = "by " + named(h.Client, h.Metadata)
	}
	switch {
	case h.Kept:
		return "unlocked " + who + ", and kept for another " + cli.Seconds(h.Remaining)
	case h.Cached:
		return "cached " + who + ", " + lasts(h.Remaining)
	case h.Kind == "read-write":
		who = "for writing " + who
	}
	return "held " + who + ", " + lasts(h.Remaining)
}

// shared counts readers or permits.
func shared(all []redlock.Share) string {
	permits := 0
	for _, s := range all {
		permits += len(s.Slots)
	}
	if permits > 0 {
		return words.Counted(permits, "permit") + " taken"
	}
	return words.Counted(len(all), "reader")
}

// longest is when the last of them ends.
func longest(all []redlock.Share) time.Duration {
	last := slices.MaxFunc(all, func(a, b redlock.Share) int { return cmp.Compare(a.Remaining, b.Remaining) })
	return last.Remaining
}

// named is a client, with its metadata.
func named(client, metadata string) string {
	if metadata == "" {
		return cli.Printable(client)
	}
	return fmt.Sprintf("%s (%s)", cli.Printable(client), cli.Printable(metadata))
}

// lasts says how long a lock is held for.
func lasts(remaining time.Duration) string {
	if remaining < 0 {
		return "without expiry: it stays until it is deleted"
	}
	return "for another " + cli.Seconds(remaining) + unlessRenewed
}

// unlessRenewed is what a line on a terminal that is written anew leaves out.
const unlessRenewed = " unless renewed"

// mostShares is how many readers or holders of permits are listed.
const mostShares = 20

// showShares lists readers or holders of permits.
func showShares(w io.Writer, all []redlock.Share) error {
	room := cli.Width(w) - 4*2 - slotsWidth - len("59m59s") - len("since 22 Nov 2006")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range all[:min(len(all), mostShares)] {
		has, since := "reads", ""
		if s.Slots != nil {
			has = slots(s.Slots)
		}
		if !s.Since.IsZero() {
			since = "\tsince " + clockTime(s.Since, time.Now())
		}
		fmt.Fprintf(t, "  %s\t%s\t%s%s\n", cli.Cut(named(s.Client, s.Metadata), room), has, cli.Seconds(s.Remaining), since)
	}
	if err := t.Flush(); err != nil || len(all) <= mostShares {
		return err
	}
	_, err := fmt.Fprintf(w, "  and %d more\n", len(all)-mostShares)
	return err
}

// slotsWidth is how wide a list of permits may be.
const slotsWidth = len("permits 0, 1 and 2")

// slots names permits. Where they do not fit it counts them; JSON has them all.
func slots(all []int) string {
	names := make([]string, len(all))
	for i, slot := range all {
		names[i] = strconv.Itoa(slot)
	}
	if len(all) == 1 {
		return "permit " + names[0]
	}
	if list := "permits " + cli.Enumerated(names); len(list) <= slotsWidth {
		return list
	}
	return words.Counted(len(all), "permit")
}
