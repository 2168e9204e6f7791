// Tests that the Go driver lib/pq returns each id as an int64 without rounding.
package main

import (
	"database/sql"
	"fmt"
	"log"
	"reflect"
	"strconv"

	"github.com/lib/pq"
)

var count = 0

func equal(found, expected interface{}, what string) {
	count++
	if reflect.DeepEqual(found, expected) {
		fmt.Printf("ok %d - %s\n", count, what)
	} else {
		fmt.Printf("not ok %d - %s\n# found: %.500s\n", count, what, fmt.Sprint(found, " instead of ", expected))
	}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	db, err := sql.Open("postgres", "sslmode=disable")
	must(err)
	_, err = db.Exec("CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), caption text)")
	must(err)
	var id int64
	must(db.QueryRow("INSERT INTO photos (caption) VALUES ($1) RETURNING id", "first light").Scan(&id))
	var caption string
	must(db.QueryRow("SELECT caption FROM photos WHERE id = $1", id).Scan(&caption))
	equal(caption, "first light", "RETURNING id, and the id as a parameter")

	transaction, err := db.Begin()
	must(err)
	copied, err := transaction.Prepare(pq.CopyIn("photos", "caption"))
	must(err)
	for row := 0; row < 1000; row++ {
		_, err = copied.Exec("copied")
		must(err)
	}
	_, err = copied.Exec()
	must(err)
	must(transaction.Commit())

	rows, err := db.Query("SELECT id, id::text FROM photos ORDER BY photos.id")
	must(err)
	var ids, texts []string
	for rows.Next() {
		var id int64
		var text string
		must(rows.Scan(&id, &text))
		ids, texts = append(ids, strconv.FormatInt(id, 10)), append(texts, text)
	}
	equal(len(ids), 1001, "CopyIn")
	equal(ids, texts, "1,001 ids")
	var shard int64
	must(db.QueryRow("SELECT snowflake.shard_of(snowflake.next_id($1))", int64(7)).Scan(&shard))
	equal(shard, int64(7), "an int64 as the shard")
	fmt.Printf("1..%d\n", count)
}
