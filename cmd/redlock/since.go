package main

import (
	"fmt"
	"time"
)

// sinceWhen says when a holder asked for its lock, as its own clock had it.
func sinceWhen(since, now time.Time) string {
	said := clockTime(since, now)
	if ago := now.Sub(since).Round(time.Second); ago >= 0 {
		return fmt.Sprintf("%s (%v ago, by the holder's clock)", said, ago)
	}
	return said + " by the holder's clock, which is ahead of ours"
}

// clockTime is the time of today, or the date of another day.
func clockTime(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.Year() == now.Year() && t.YearDay() == now.YearDay() {
		return t.Format(time.TimeOnly)
	}
	return t.Format("2 Jan 2006")
}

// orNil is nil for an unknown time: null in JSON.
func orNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
