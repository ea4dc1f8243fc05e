package model

import "slices"

// Table returns all rows, model by model. Within a model rows with the same bounds follow one
// another, first the one with all rules in force.
func Table() []Row {
	return slices.Concat(exclusionRows(), fencingRows(), guardRows(), tickRows(), voteRows())
}
