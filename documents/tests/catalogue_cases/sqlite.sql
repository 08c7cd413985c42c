create table t (a integer primary key autoincrement, b text not null unique references o, foreign key (b) references p(q)); ALTER TABLE t ADD COLUMN c int;
