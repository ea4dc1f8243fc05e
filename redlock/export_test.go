package redlock

// Lines is how many names somebody waits for.
func (c *Client) Lines() int {
	c.lines.mu.Lock()
	defer c.lines.mu.Unlock()
	return len(c.lines.byName)
}

// Kept is how many locks the keeper looks after.
func (c *Client) Kept() int {
	c.keeper.mu.Lock()
	defer c.keeper.mu.Unlock()
	return len(c.keeper.locks)
}
