package guard

import "github.com/quorumlock/quorumlock/internal/model/search"

const (
	ttl    = 2 // of the lock
	maxTTL = 2
	lag    = 2 // min-replicas-max-lag

	firstTime = 3
)

// Rules are the rules of the protocol; each can be taken away alone.
type Rules struct {
	// Witness is what shows a client, together with the answer it counts, that the node's
	// memory is still the one it knows.
	Witness Witness
	// ReplicationID: the identity of a memory is master_replid, which is new after a promotion
	// too. Without it, the run id of the process.
	ReplicationID bool
	// ShortCut is who may skip the wait because its node is believed to be new.
	ShortCut ShortCut
	// MinReplicas: a primary that has lost its replica refuses writes after the lag, by
	// min-replicas-to-write.
	MinReplicas bool
	// WaitForLag: a node with replicas waits for the lag on top of MaxTTL.
	WaitForLag bool
}

// Witness is a way of learning that a memory was lost.
type Witness uint8

// The protocol uses InfoInPipeline. The ones with a script mean that the text of the acquire
// script contains the identity, so that a server which runs it from its cache has not been
// restarted since somebody put it there.
const (
	InfoInPipeline Witness = iota // INFO, answered in the pipeline of the votes
	MarkerOnly                    // nothing but the identity found in the data
	ScriptLoaded                  // the script, put there by SCRIPT LOAD after admission
	ScriptEvaled                  // the same, and NOSCRIPT is answered by EVAL of the old text
	ScriptChecked                 // the script, put there only by an EVAL that reads INFO too
)

// ShortCut is a way of telling that a node is new, and so has forgotten nothing.
type ShortCut uint8

// The protocol uses NoShortCut.
const (
	NoShortCut        ShortCut = iota
	ByUptime                   // it has no marker, is up for MaxTTL, and the client never saw it
	ByWitnessScript            // and the admission script is not in its cache
	ByWitnessCounters          // and it was never flushed, and nothing was replicated into it
)

// Sound returns the rules of the protocol, all in force.
func Sound() Rules {
	return Rules{ReplicationID: true, MinReplicas: true, WaitForLag: true}
}

// Config is one check: the rules, and the bounds within which all runs are looked at. A pair has a
// second server; FailOvers and what follows need one.
type Config struct {
	Rules Rules
	// LastTime is where the clock stops. It starts at 3. To mean anything it leaves time for A
	// to be granted after one wait, and for B to ask after the next.
	LastTime uint8
	// Restarts, Snapshots and Flushes are how many of each may happen.
	Restarts, Snapshots, Flushes uint8
	// SlowBoots is how many restarts may happen on a clock that is slow and then stepped, so
	// that the uptime, which is told from the wall clock, looks MaxTTL longer than it is.
	SlowBoots uint8
	// FailOvers is how many times the other server may be promoted.
	FailOvers uint8
	// Moves: the other server need not be a replica; the address may come to lead to it anyway.
	Moves bool
	// CutOff: the old primary of a fail-over may live on, with A at its side.
	CutOff bool
}

// Check explores the model within the bounds of c and up to limit states.
func Check(c Config, limit int) search.Report {
	return search.Run[State](newModel(c), limit, false).Report()
}
