#include "pg/sequence_page.hpp"

namespace snowflake::pg {

namespace {

// As in PostgreSQL's commands/sequence.c, which keeps it to itself.
constexpr uint32 kSequenceMagic = 0x1717;

Form_pg_sequence_data tuple_of(Page page) {
  const ItemId item = PageGetItemId(page, FirstOffsetNumber);
  const auto tuple = reinterpret_cast<HeapTupleHeader>(PageGetItem(page, item));
  return reinterpret_cast<Form_pg_sequence_data>(reinterpret_cast<char*>(tuple) + tuple->t_hoff);
}

}  // namespace

SequencePage SequencePage::open(Relation relation, int buffer_lock_mode) {
  const Buffer buffer = ReadBuffer(relation, 0);
  LockBuffer(buffer, buffer_lock_mode);
  const Page page = BufferGetPage(buffer);
  if (PageGetMaxOffsetNumber(page) != FirstOffsetNumber ||
      PageGetSpecialSize(page) != MAXALIGN(sizeof(uint32)) ||
      *reinterpret_cast<const uint32*>(PageGetSpecialPointer(page)) != kSequenceMagic)
    elog(ERROR, "sequence \"%s\" is not stored as this library knows it",
         RelationGetRelationName(relation));
  return {buffer};
}

int64_t SequencePage::read(Relation relation) {
  SequencePage page = open(relation, BUFFER_LOCK_SHARE);
  const int64_t value = page.value();
  page.close();
  return value;
}

int64_t SequencePage::value() const {
  return tuple_of(BufferGetPage(buffer))->last_value;
}

XLogRecPtr SequencePage::write(Relation relation, int64_t value) {
  GenericXLogState* record = GenericXLogStart(relation);
  // A full image: replay needs no earlier state of the page, whatever full_page_writes says.
  const Page page = GenericXLogRegisterBuffer(record, buffer, GENERIC_XLOG_FULL_IMAGE);
  const Form_pg_sequence_data tuple = tuple_of(page);
  tuple->last_value = value;
  tuple->is_called = true;
  tuple->log_cnt = 0;  // nextval() must log again before it hands out a value
  return GenericXLogFinish(record);
}

}  // namespace snowflake::pg
