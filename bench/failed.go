package bench

import (
	"errors"
	"fmt"
	"strings"
)

// Failed lists the cases in which something went wrong that should not have: an operation
// failed, a lease was lost, a lock had two holders, keys were left at the masters, or a
// trial could not be finished.
// It leaves out what fails while masters hang or are killed. Degraded measures just
// that, and its table and notes show it.
func (r *Report) Failed() (cases []string) {
	for _, result := range r.Results {
		if wrong := result.wrong(); len(wrong) > 0 {
			cases = append(cases, fmt.Sprintf("%s with %s: %s", result.Workload, result.Subject, strings.Join(wrong, ", ")))
		}
	}
	return cases
}

// wrong is what went wrong in one case.
func (r *Result) wrong() (list []string) {
	failures := Failures
	if kindOf(r.Workload) == "degraded" {
		failures = named(Healthy, Failures)
	}
	if n := r.Values[failures]; n > 0 {
		list = append(list, operations(int64(n))+" failed")
	}
	if n := r.Values[Lost]; n > 0 {
		list = append(list, fmt.Sprintf("leases lost: %.0f", n))
	}
	if n := r.Values[Violations]; n > 0 {
		list = append(list, fmt.Sprintf("times two clients had the lock at once: %.0f", n))
	}
	if n := r.Values[Leftover]; n > 0 && failures == Failures {
		list = append(list, fmt.Sprintf("keys left at the masters after every release: %.0f", n))
	}
	if r.unfinished {
		list = append(list, "not finished")
	}
	return list
}

// isFailure reports whether a trial that ended with an error should not have. A library
// whose calls are stuck while masters hang ends a Degraded trial early.
func isFailure(err error) bool { return err != nil && !errors.Is(err, errGivenUp) }
