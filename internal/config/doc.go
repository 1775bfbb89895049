// Package config reads Penstock's YAML configuration. It reports every problem at
// once, in the order of the file, each with its key and line; a key that does not
// exist is refused with the nearest one that does. What it returns is plain data:
// secrets named in it have been read, environment variables replaced, defaults
// filled in. What is allowed and most likely not meant is a warning beside it.
//
// No problem shows what an environment variable or a file holds, nor the value of
// a [Secret]. Reading is bounded in time and memory, whatever the file.
package config
