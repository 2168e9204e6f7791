#include "pg/server/sequence_page.hpp"

namespace snowflake::pg {

namespace {

// PostgreSQL's commands/sequence.c defines the magic number of sequence pages, but does not export
// it.
constexpr uint32 kSequenceMagic = 0x1717;

HeapTupleHeader header_of(Page page) {
  const ItemId item = PageGetItemId(page, FirstOffsetNumber);
  return reinterpret_cast<HeapTupleHeader>(PageGetItem(page, item));
}

Form_pg_sequence_data tuple_of(Page page) {
  const HeapTupleHeader tuple = header_of(page);
  return reinterpret_cast<Form_pg_sequence_data>(reinterpret_cast<char*>(tuple) + tuple->t_hoff);
}

Size witness_offset(Page page) {
  return MAXALIGN(header_of(page)->t_hoff + sizeof(FormData_pg_sequence_data));
}

bool has_witness(Page page) {
  return ItemIdGetLength(PageGetItemId(page, FirstOffsetNumber)) ==
         witness_offset(page) + sizeof(int64_t);
}

int64_t* witness_of(Page page) {
  return reinterpret_cast<int64_t*>(reinterpret_cast<char*>(header_of(page)) +
                                    witness_offset(page));
}

void add_witness(Page page) {
  const ItemId item = PageGetItemId(page, FirstOffsetNumber);
  const Size size = witness_offset(page) + sizeof(int64_t);
  char* const tuple = static_cast<char*>(palloc0(size));
  memcpy(tuple, header_of(page), std::min<Size>(ItemIdGetLength(item), witness_offset(page)));
  if (!PageIndexTupleOverwrite(page, FirstOffsetNumber, tuple, size))
    elog(ERROR, "the page of a sequence has no room for a second copy of the high-water mark");
  pfree(tuple);
}

bool is_sequence(Page page) {
  return !PageIsNew(page) && PageGetMaxOffsetNumber(page) == FirstOffsetNumber &&
         PageGetSpecialSize(page) == MAXALIGN(sizeof(uint32)) &&
         *reinterpret_cast<const uint32*>(PageGetSpecialPointer(page)) == kSequenceMagic;
}

SequencePage checked(Relation relation, Buffer buffer) {
  if (!is_sequence(BufferGetPage(buffer)))
    elog(ERROR, "sequence \"%s\" is stored in a format that this library does not support",
         RelationGetRelationName(relation));
  return {buffer};
}

}  // namespace

SequencePage SequencePage::open(Relation relation, BufferLock buffer_lock_mode) {
  const Buffer buffer = ReadBuffer(relation, 0);
  LockBuffer(buffer, buffer_lock_mode);
  return checked(relation, buffer);
}

bool SequencePage::try_open(Relation relation, SequencePage* page) {
  const Buffer buffer = ReadBuffer(relation, 0);
  if (!ConditionalLockBuffer(buffer)) {
    ReleaseBuffer(buffer);
    return false;
  }
  *page = checked(relation, buffer);
  return true;
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

bool SequencePage::is_called() const {
  return tuple_of(BufferGetPage(buffer))->is_called;
}

int64_t SequencePage::mark() const {
  const Page page = BufferGetPage(buffer);
  return has_witness(page) ? std::max(value(), *witness_of(page)) : value();
}

int64_t SequencePage::mark_of_any(Relation relation) {
  // A relation without storage has no page.
  if (!smgrexists(RelationGetSmgr(relation), MAIN_FORKNUM) ||
      RelationGetNumberOfBlocks(relation) == 0)
    return 0;
  const Buffer buffer = ReadBufferExtended(relation, MAIN_FORKNUM, 0, RBM_ZERO_ON_ERROR, nullptr);
  LockBuffer(buffer, BUFFER_LOCK_SHARE);
  const SequencePage page{buffer};
  const int64_t mark =
      is_sequence(BufferGetPage(buffer)) && has_witness(BufferGetPage(buffer)) ? page.mark() : 0;
  UnlockReleaseBuffer(buffer);
  return mark;
}

namespace {

void set_value(Page page, int64_t value) {
  const Form_pg_sequence_data tuple = tuple_of(page);
  tuple->last_value = value;
  tuple->is_called = true;
  tuple->log_cnt = 0;  // makes nextval() write WAL
}

}  // namespace

// Replay of the WAL record does not depend on the earlier content of the page, because the WAL
// record always contains a full page image.
XLogRecPtr SequencePage::write(Relation relation, int64_t value) {
  GenericXLogState* record = GenericXLogStart(relation);
  set_value(GenericXLogRegisterBuffer(record, buffer, GENERIC_XLOG_FULL_IMAGE), value);
  return GenericXLogFinish(record);
}

XLogRecPtr SequencePage::write_mark(Relation relation, int64_t mark) {
  GenericXLogState* record = GenericXLogStart(relation);
  const Page page = GenericXLogRegisterBuffer(record, buffer, GENERIC_XLOG_FULL_IMAGE);
  if (!has_witness(page)) add_witness(page);
  set_value(page, mark);
  *witness_of(page) = mark;
  return GenericXLogFinish(record);
}

}  // namespace snowflake::pg
