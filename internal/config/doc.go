// Package config reads Penstock's YAML configuration. It reports every problem at
// once, each with its key and line; a key that does not exist is refused with the
// nearest one that does. What it returns is plain data: files named in it have
// been read, environment variables replaced, defaults filled in.
package config
